//! Life: 65 and 66. Many sandboxes, one after the other and at once.

use harness::{Agentbox, callers_alone, callers_apart, is_full};

use crate::remains::Remains;

callers_apart!(life_66_many_cycles_leave_nothing, |caller| {
    let cycles = if is_full() { 2000 } else { 60 };
    let before = Remains::before(caller);
    for _ in 0..cycles {
        Agentbox::shipped(caller).run(["/bin/true"]).assert_success();
    }
    before.nothing_is_left(&format!("{cycles} cycles"));
});

callers_alone!(life_65_many_at_once_leave_nothing, |caller| {
    const SANDBOXES: usize = 20;
    let before = Remains::before(caller);
    // All of them run at the same time: none ends before the last has said something.
    let mut running: Vec<_> =
        (0..SANDBOXES).map(|_| Agentbox::shipped(caller).start(["sh", "-c", "echo up; cat"])).collect();
    for sandbox in &running {
        sandbox.wait_for("up\n");
    }
    for (number, sandbox) in running.iter_mut().enumerate() {
        sandbox.write(format!("number {number}\n").as_bytes());
    }
    for (number, sandbox) in running.into_iter().enumerate() {
        let finished = sandbox.finish();
        assert_eq!(finished.assert_success().stdout(), format!("up\nnumber {number}\n"));
    }
    before.nothing_is_left("many at once");
});
