//! Exhaustion: 54. Space and files in the private directories.

use harness::{Agentbox, HOST_KERNEL, callers, is_on, stands};
use policy::Wall;

/// All private directories are one file system, so each of them fills it.
const PLACES: [&str; 3] = ["/workspace", "/dev/shm", "/tmp"];

/// An error unless the script was stopped for want of space.
fn is_stopped(sandbox: Agentbox, script: &str) -> Result<(), String> {
    let finished = sandbox.options(["--disk", "16M"]).run(["bash", "-c", script]);
    if finished.code == 0 {
        return Err(format!("{script}: {}", finished.stdout().trim()));
    }
    let said = finished.stderr();
    assert!(said.contains("No space left on device"), "{script}: {} {said}", finished.code);
    Ok(())
}

callers!(exhaustion_54_space_is_bounded, |caller| {
    stands(caller, Wall::DiskLimit, &|start| {
        PLACES.iter().try_for_each(|place| {
            is_stopped(
                start(),
                &format!("head -c 64M /dev/zero > {place}/file && stat -c '%s bytes' {place}/file"),
            )
        })
    });
});

callers!(exhaustion_54_files_are_bounded, |caller| {
    let in_memory = is_on(HOST_KERNEL, "files in /dev/shm are its kernel's memory, and bounded with that");
    let places = PLACES.iter().filter(|place| in_memory || **place != "/dev/shm");
    stands(caller, Wall::DiskLimit, &|start| {
        places.clone().try_for_each(|place| {
            let script = "for i in {1..6000}; do : > file$i || exit 1; done; echo 6000 files";
            is_stopped(start(), &format!("cd {place} && {script}"))
        })
    });
});

callers!(exhaustion_54_a_full_sandbox_still_works, |caller| {
    let script = "head -c 64M /dev/zero > /workspace/file; head -c 1K /dev/zero > /tmp/other && echo room; \
                  rm /workspace/file; head -c 1K /dev/zero > /tmp/other && echo again";
    let full = Agentbox::shipped(caller).options(["--disk", "16M"]).run(["bash", "-c", script]);
    assert_eq!(full.assert_success().stdout(), "again\n", "{}", full.stderr());
    // The host has as much as before.
    for place in ["/tmp", "/dev/shm"] {
        let mut file = tempfile::tempfile_in(place).unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 1 << 20]).unwrap();
    }
});
