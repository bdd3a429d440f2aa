//! What `commit` keeps, and when there is nothing to keep.

use harness::{binaries, callers};

use crate::layout::Layout;
use crate::place::{Place, busybox};

// A kernel of the sandbox's own could keep what was written to itself; one that opens files itself could, and one that asks
// another process for them, as it does where a tree of the owner's can be written.
callers!(what_nobody_has_closed_is_kept_as_well, |caller| {
    let place = Place::new(caller);
    let probe = std::fs::read(binaries().probe()).unwrap();
    let layer = busybox().program("bin/probe", &probe).directory("srv/", 0o777, (0, 0));
    place.import(&Layout::of(&[layer.finish()]), "bb:1").assert_success();
    let tree = place.path("tree");
    std::fs::create_dir(&tree).unwrap();
    caller.own(&tree);
    let mount = format!("{}:/mnt/tree:rw", tree.display());
    for (number, options) in [&[][..], &["--mount", &mount]].into_iter().enumerate() {
        let mut words = vec!["create", "--image", "bb:1"];
        words.extend(options);
        let id = place.say(&words).assert_success().stdout().trim().to_owned();
        let script = "for place in /srv /home/agent; do /bin/probe hold $place </dev/null >/dev/null 2>&1 & done; \
                      until [ -e /srv/held ] && [ -e /home/agent/held ]; do sleep 0.1; done";
        place.say(&["exec", &id, "--", "/bin/sh", "-c", script]).assert_success();
        let image = format!("kept:{number}");
        place.say(&["commit", &id, &image]).assert_success();
        // It goes on as before.
        place.say(&["exec", &id, "--", "/bin/cat", "/srv/written"]).assert_success();
        place.say(&["rm", "--force", &id]).assert_success();
        let look = "for place in /srv /home/agent; do cd $place; cat written; echo; stat -c '%s %a %Y' written; \
                    head -c 6 mapped; dd if=mapped bs=1 skip=5000 count=7 2>/dev/null; echo; stat -c %s mapped; done";
        let each = "written\n7 751 1000000000\nmappedfurther\n8192\n";
        assert_eq!(place.run(&image, look), each.repeat(2), "{options:?}");
    }
});

callers!(of_one_that_has_stopped_nothing_is_left_to_keep, |caller| {
    let place = Place::new(caller);
    let layer = busybox().directory("srv/", 0o777, (0, 0));
    place.import(&Layout::of(&[layer.finish()]), "bb:1").assert_success();
    let id = place.say(&["create", "--image", "bb:1"]).assert_success().stdout().trim().to_owned();
    place.say(&["exec", &id, "--", "/bin/touch", "/srv/new", "/workspace/kept"]).assert_success();
    place.say(&["stop", &id]).assert_success();
    let told = place.say(&["commit", &id, "bb:2"]).assert_code(125).stderr();
    assert!(told.contains("has ended with its processes\n"), "{told}");
    assert!(told.contains("begins with the image as it is, beside the workspace"), "{told}");
    assert_eq!(place.images(), ["bb:1"]);
    // And that is what holds.
    place.say(&["start", &id]).assert_success();
    let left = place.say(&["exec", &id, "--", "/bin/sh", "-c", "ls /srv /workspace"]);
    assert_eq!(left.assert_success().stdout(), "/srv:\n\n/workspace:\nkept\n");
    place.say(&["rm", "--force", &id]).assert_success();
});
