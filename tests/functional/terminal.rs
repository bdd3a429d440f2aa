//! `run` on a terminal: raw, resized, interrupted, suspended, and given back as it was.

use harness::{Agentbox, callers};
use rustix::process::Signal;

use harness::Pty;

callers!(the_command_has_a_terminal, |caller| {
    let script =
        "test -t 0 && test -t 1 && test -t 2 && tty; echo $TERM; stty size; echo -e 'err' >&2; exit 4";
    let mut pty = Pty::start(Agentbox::shipped(caller), &["bash", "-c", script]);
    assert_eq!(pty.finish(), 4);
    pty.wait_for("/dev/pts/0\r\nxterm-256color\r\n24 80\r\nerr\r\n");
});

callers!(keys_go_through_untouched, |caller| {
    let mut pty =
        Pty::start(Agentbox::shipped(caller), &["sh", "-c", "stty raw -echo; echo ready; od -An -tx1 -N6"]);
    pty.wait_for("ready");
    assert!(pty.is_raw());
    pty.type_keys("\u{3}\u{1a}\u{1c}\u{4}\r\n");
    pty.wait_for(" 03 1a 1c 04 0d 0a");
    assert_eq!(pty.finish(), 0);
});

callers!(the_line_discipline_is_inside, |caller| {
    let mut pty =
        Pty::start(Agentbox::shipped(caller), &["sh", "-c", "echo ready; read line; echo \"[$line]\""]);
    pty.wait_for("ready");
    // Backspace is done by the terminal inside; the echo comes from there too, once.
    pty.type_keys("abX\u{7f}c\r");
    pty.wait_for("[abc]");
    assert_eq!(pty.finish(), 0);
    assert_eq!(pty.seen().matches("abX").count(), 1);
});

callers!(colours_pass, |caller| {
    let script = "printf '\\033[1;31mred\\033[0m \\033]0;title\\007'; ls --color=auto -d /";
    let mut pty = Pty::start(Agentbox::shipped(caller), &["sh", "-c", script]);
    assert_eq!(pty.finish(), 0);
    pty.wait_for("\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}");
    pty.wait_for("\u{1b}[01;34m/");
});

callers!(a_new_size_arrives, |caller| {
    let script = "trap 'echo changed' WINCH; echo ready; while :; do stty size; sleep 0.05; done";
    let pty = Pty::start(Agentbox::shipped(caller), &["bash", "-c", script]);
    pty.wait_for("24 80");
    pty.resize(40, 132);
    pty.wait_for("40 132");
    pty.wait_for("changed");
    pty.resize(10, 20);
    pty.wait_for("10 20");
});

callers!(control_c_interrupts_the_command_inside, |caller| {
    let script = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let mut pty = Pty::start(Agentbox::shipped(caller), &["sh", "-c", script]);
    pty.wait_for("ready");
    pty.type_keys("\u{3}");
    assert_eq!(pty.finish(), 3);
    pty.wait_for("interrupted");

    let mut pty = Pty::start(Agentbox::shipped(caller), &["sh", "-c", "echo ready; exec sleep 1000"]);
    pty.wait_for("ready");
    pty.type_keys("\u{3}");
    assert_eq!(pty.finish(), 130);
});

callers!(control_z_suspends_a_job_of_the_shell_inside, |caller| {
    // The job says when it has the terminal: what is typed before that is the shell's.
    let job = "sh -c 'trap \"echo back\" CONT; echo up; while :; do read line && echo \"got $line\"; done'\r";
    let mut pty = Pty::start(Agentbox::shipped(caller), &["bash", "--norc", "--noprofile"]);
    pty.wait_for("bash-");
    pty.type_keys(job);
    pty.wait_for("up\r\n");
    pty.type_keys("once\r");
    pty.wait_for("got once");
    pty.type_keys("\u{1a}");
    pty.wait_for("Stopped");
    assert_ne!(pty.state(), 'T', "agentbox itself goes on");
    pty.type_keys("echo in $((40 + 2)) between\r");
    pty.wait_for("in 42 between");
    pty.type_keys("fg\r");
    pty.wait_for("back\r\n");
    pty.type_keys("again\r");
    pty.wait_for("got again");
    pty.type_keys("\u{3}");
    // The shell asks for pastes to be marked each time that it begins to read.
    pty.wait_until("the fourth prompt", |pty| pty.seen().matches("\u{1b}[?2004h").count() == 4);
    pty.type_keys("exit 8\r");
    assert_eq!(pty.finish(), 8);
});

callers!(agentbox_itself_can_be_suspended, |caller| {
    let mut pty = Pty::start(Agentbox::shipped(caller), &["cat"]);
    // Until it is, what is typed is shown by the terminal outside as well.
    pty.wait_until("raw", Pty::is_raw);
    pty.type_keys("before\r");
    pty.wait_for("before\r\nbefore");
    pty.signal(Signal::TSTP);
    pty.wait_until("stopped", |pty| pty.state() == 'T');
    assert!(pty.is_as_before(), "the shell outside gets its terminal back");
    pty.signal(Signal::CONT);
    pty.wait_until("raw again", Pty::is_raw);
    pty.type_keys("after\r");
    pty.wait_for("after\r\nafter");
    pty.type_keys("\u{4}");
    assert_eq!(pty.finish(), 0);
});

callers!(the_terminal_is_given_back_after_a_signal, |caller| {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let mut pty = Pty::start(Agentbox::shipped(caller), &["sh", "-c", "echo ready; exec sleep 1000"]);
        pty.wait_for("ready");
        assert!(pty.is_raw());
        pty.signal(signal);
        assert_eq!(pty.finish(), code);
    }
});

callers!(the_third_signal_ends_a_command_that_does_not_listen, |caller| {
    let mut pty =
        Pty::start(Agentbox::shipped(caller), &["sh", "-c", "trap '' INT TERM; echo ready; sleep 1000"]);
    pty.wait_for("ready");
    for _ in 0..3 {
        pty.signal(Signal::TERM);
        // Two of the same that are pending at once are one.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(pty.finish(), 143);
});

callers!(the_terminal_is_given_back_after_an_error, |caller| {
    let mut pty = Pty::start(Agentbox::shipped(caller), &["no-such-program"]);
    assert_eq!(pty.finish(), 127);
    // Said on a terminal that starts lines by itself again.
    pty.wait_for("error: 'no-such-program' is not found inside\r\n");
    let mut pty = Pty::start(Agentbox::shipped(caller).option("--workdir=/no/such"), &["true"]);
    assert_eq!(pty.finish(), 125);
    let mut pty = Pty::start(Agentbox::shipped(caller).option("--mount=/no/such:/x"), &["true"]);
    assert_eq!(pty.finish(), 125);
});

callers!(pipes_can_be_had_on_a_terminal, |caller| {
    let script = "test -t 0 || test -t 1 || test -t 2 || echo pipes; echo ready; read line; echo \"[$line]\"";
    let mut pty = Pty::start(Agentbox::shipped(caller).option("--no-tty"), &["sh", "-c", script]);
    pty.wait_for("ready");
    assert!(pty.is_as_before());
    pty.type_keys("typed\r");
    assert_eq!(pty.finish(), 0);
    pty.wait_for("pipes");
    pty.wait_for("[typed]");
});
