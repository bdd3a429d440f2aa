//! Layers over each other: what an upper one takes away, replaces and adds.

use harness::callers;

use crate::layout::Layout;
use crate::place::{Place, busybox};
use crate::tar::{Entry, Tar};

callers!(an_upper_layer_takes_away_what_it_says, |caller| {
    let place = Place::new(caller);
    let low = busybox()
        .directory("d/", 0o755, (0, 0))
        .file("d/kept", b"low")
        .file("d/gone", b"low")
        .file("d/changed", b"low")
        .directory("hidden/", 0o755, (0, 0))
        .file("hidden/low", b"low")
        .directory("back/", 0o755, (0, 0))
        .file("back/low", b"low")
        .directory("whole/", 0o755, (0, 0))
        .file("whole/low", b"low")
        .file("turned", b"low")
        .file("top-gone", b"low");
    let high = Tar::default()
        .file("d/.wh.gone", b"")
        .file("d/changed", b"high")
        .directory("hidden/", 0o755, (0, 0))
        .file("hidden/.wh..wh..opq", b"")
        .file("hidden/high", b"high")
        // Taken away and made again: in either order of the two it hides what was below.
        .file(".wh.back", b"")
        .directory("back/", 0o755, (0, 0))
        .file("back/high", b"high")
        .directory("whole/", 0o755, (0, 0))
        .file("whole/high", b"high")
        .file(".wh.whole", b"")
        .directory("turned/", 0o755, (0, 0))
        .file("turned/file", b"high")
        .file(".wh.top-gone", b"")
        .file(".wh..wh.plnk", b"");
    place.import(&Layout::of(&[low.clone().finish(), high.finish()]), "two:1").assert_success();
    let script = "for f in d hidden back whole turned; do echo $f: $(ls /$f); done; cat /d/kept /d/changed; \
                  test -e /top-gone || echo gone; find /d /hidden /back -name '.wh*'";
    let expected = "d: changed kept\nhidden: high\nback: high\nwhole: high\nturned: file\nlowhighgone\n";
    assert_eq!(place.run("two:1", script), expected);
    // The lower one is the same directory for both.
    place.import(&Layout::of(&[low.finish()]), "one:1").assert_success();
    assert_eq!(place.layers().len(), 2);
    assert_eq!(place.run("one:1", "ls /d; ls /back"), "changed\ngone\nkept\nlow\n");
});

callers!(a_layer_that_hides_all_below_is_the_lowest, |caller| {
    let place = Place::new(caller);
    let low =
        Tar::default().directory("bin/", 0o755, (0, 0)).file("bin/evil", b"x").file("etc/passwd", b"low");
    let high = busybox().file(".wh..wh..opq", b"");
    place.import(&Layout::of(&[low.finish(), high.finish()]), "top:1").assert_success();
    assert_eq!(
        place.run("top:1", "test -e /bin/evil || echo hidden; grep -c low /etc/passwd || true"),
        "hidden\n0\n"
    );
});

callers!(files_are_as_the_layer_says, |caller| {
    let place = Place::new(caller);
    let tar = busybox()
        .entry(Entry { name: "a", mode: 0o640, contents: b"a", ..Entry::PLAIN })
        .hard_link("b", "a")
        .directory("sticky/", 0o1777, (0, 0))
        .directory("closed/", 0o500, (0, 0))
        .file("closed/in", b"x")
        .link("dangling", "/no/such")
        .entry(Entry { name: "pipe", kind: b'6', ..Entry::PLAIN })
        .entry(Entry { name: "disk", kind: b'4', mode: 0o666, ..Entry::PLAIN })
        .entry(Entry { name: "null", kind: b'3', mode: 0o666, ..Entry::PLAIN })
        .extended(&[
            ("SCHILY.xattr.user.note", "kept"),
            ("SCHILY.xattr.security.capability", "x"),
            ("mtime", "1234567890.5"),
        ])
        .file("noted", b"n")
        .extended(&[("SCHILY.xattr.user.overlay.opaque", "y"), ("SCHILY.xattr.trusted.overlay.opaque", "y")])
        .directory("honest/", 0o755, (0, 0))
        .directory("early/", 0o555, (0, 0))
        .file("early/late", b"late")
        .file("twice", b"one")
        .file("twice", b"two");
    let imported = place.import(&Layout::of(&[tar.finish()]), "files:1");
    let told = imported.assert_success().stderr();
    for note in
        ["3 devices and pipes were left out", "1 files lost capabilities", "2 attributes were left out"]
    {
        assert!(told.contains(note), "{told}");
    }
    let script = "stat -c '%a %h %s' /a /b; stat -c %a /sticky /closed; readlink /dangling; stat -c %Y /noted; \
                  ls / | grep -c -e pipe -e disk -e null; cat /early/late /twice";
    let expected = "640 2 1\n640 2 1\n1777\n500\n/no/such\n1234567890\n0\nlatetwo";
    assert_eq!(place.run("files:1", script), expected);
    let layer = place.store().join("layers").join(&place.layers()[0]);
    let value = |path: &str, name: &str| {
        let mut value = [0; 16];
        rustix::fs::getxattr(layer.join(path), name, &mut value).map(|length| value[..length].to_vec())
    };
    assert_eq!(value("noted", "user.note").unwrap(), b"kept");
    assert!(value("noted", "security.capability").is_err());
    assert!(value("honest", "user.overlay.opaque").is_err(), "only we say what hides what");
});
