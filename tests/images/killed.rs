//! Killed at every moment: the store is whole, the next try goes on, and nothing is left that `gc` does not find.

use std::fs;

use failpoint::Point;
use harness::{Agentbox, callers};
use serde_json::json;

use crate::layout::Layout;
use crate::place::{Place, busybox, open_up};
use crate::tar::Tar;

callers!(a_killed_import_is_gone_on_with, |caller| {
    for point in Point::IMAGE {
        let place = Place::weakened(caller);
        let layers = [busybox().finish(), Tar::default().file("mark", b"well\n").finish()];
        let layout = Layout { config: Some(json!({"Cmd": ["/bin/cat", "/mark"]})), ..Layout::of(&layers) };
        let path = place.path("layout");
        layout.write(&path);
        open_up(&path);
        let mark = place.path("mark");
        fs::write(&mark, "0").unwrap();
        caller.own(&mark);
        let words = ["image", "import", &path.display().to_string(), "bb:1"];
        let order = format!("kill {} {}", point.name(), mark.display());
        let killed = place.agentbox().env("AGENTBOX_FAILPOINT", &order).start_words(&words).finish();
        assert_ne!(killed.code, 0, "{}", point.name());
        assert_ne!(fs::read(&mark).unwrap(), b"0", "{} is not come by", point.name());
        // Whatever is listed can be run.
        for image in place.images() {
            assert_eq!(
                place.say(&["run", "--image", &image]).assert_success().stdout(),
                "well\n",
                "{}",
                point.name()
            );
        }
        place.say(&words).assert_success();
        assert_eq!(
            place.say(&["run", "--image", "bb:1"]).assert_success().stdout(),
            "well\n",
            "{}",
            point.name()
        );
        place.say(&["image", "gc"]).assert_success();
        assert_eq!(place.layers().len(), 2, "{}: {:?}", point.name(), place.layers());
        let blobs = fs::read_dir(place.store().join("blobs/sha256")).unwrap().count();
        assert_eq!(blobs, 4, "{}", point.name());
        place.say(&["image", "rm", "bb:1"]).assert_success();
        place.say(&["image", "gc"]).assert_success();
        assert_eq!(place.layers(), Vec::<String>::new(), "{}", point.name());
    }
});

callers!(two_who_take_the_same_in_wait_for_each_other, |caller| {
    let place = Place::new(caller);
    let path = place.path("layout");
    let layers = [busybox().finish(), Tar::default().file("large", &vec![1; 8 << 20]).finish()];
    Layout::of(&layers).write(&path);
    open_up(&path);
    let path = path.display().to_string();
    let running: Vec<_> = (0..4)
        .map(|number| {
            let name = format!("bb:{}", number % 2);
            let agentbox: Agentbox = place.agentbox();
            agentbox.start_words(&["image", "import", &path, &name])
        })
        .collect();
    for import in running {
        import.finish().assert_success();
    }
    assert_eq!(place.images(), ["bb:0", "bb:1"]);
    assert_eq!(place.layers().len(), 2);
    assert_eq!(place.run("bb:1", "stat -c %s /large"), format!("{}\n", 8 << 20));
});
