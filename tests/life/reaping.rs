//! Life: 63. What processes inside leave behind: orphans, descriptors that they hold, and shots at everyone.

use std::time::{Duration, Instant};

use harness::{Agentbox, callers};

callers!(life_63_orphans_are_reaped, |caller| {
    // Double forks, in their session and out of it, that end while nobody waits for them.
    let script = r#"
        count() { set -- /proc/[0-9]*; count=$#; }
        count; before=$count
        for i in $(seq 200); do (sleep 0.0$((i % 10)) &) ; done
        for i in $(seq 50); do (setsid sh -c 'sleep 0.01 & exit 3' &) ; done
        for i in $(seq 200); do
            count; [ $count -le $before ] && break
            sleep 0.05
        done
        echo "left $((count > before ? count - before : 0))"
    "#;
    let finished = Agentbox::shipped(caller).run(["bash", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "left 0\n");
});

callers!(life_63_nothing_in_the_background_holds_up_the_end, |caller| {
    for script in [
        "sleep 600 & echo done",
        "setsid sleep 600 & echo done",
        "trap '' TERM HUP; sleep 600 & echo done",
        "(while :; do echo more >&2; sleep 0.01; done) & echo done",
    ] {
        let start = Instant::now();
        let finished = Agentbox::shipped(caller).run(["bash", "-c", script]);
        assert_eq!(finished.assert_success().stdout(), "done\n", "{script}");
        assert!(start.elapsed() < Duration::from_secs(5), "{script}: {:?}", start.elapsed());
    }
});

callers!(life_63_a_shot_at_everyone_hits_no_host, |caller| {
    let mut neighbour = Agentbox::shipped(caller).start(["cat"]);
    // From the side, so that the command itself is hit. Init is nobody's target, whatever the signal.
    let script = "kill -9 1; kill -KILL 1; kill -SEGV 1; (setsid sh -c 'kill -9 -1' &); sleep 600";
    let finished = Agentbox::shipped(caller).run(["bash", "-c", script]);
    // Only gVisor's kernel lets whoever has init's id end it, who is the agent where there is one id: its own sandbox ends.
    let ends_itself = harness::backend().has_own_kernel() && caller == Caller::Single;
    finished.assert_code(if ends_itself { 125 } else { 137 });
    neighbour.write(b"still here\n");
    neighbour.wait_for("still here\n");
    neighbour.finish().assert_success();
});
