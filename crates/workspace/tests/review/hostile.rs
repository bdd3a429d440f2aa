//! A layer that was written to mislead, to hide or to stop whoever looks at it.

use std::fs;
use std::os::unix::fs::symlink;

use workspace::{Order, Review, ReviewError, Risky, Why};

use crate::place::{Place, path};

#[track_caller]
fn review(place: &Place) -> Review {
    workspace::review(&place.files(), &[]).unwrap()
}

fn codes(review: &Review, name: &[u8]) -> Vec<&'static str> {
    let file = review.files.iter().find(|file| file.change.path == name).unwrap();
    file.risks.iter().map(|risk| risk.code.name()).collect()
}

#[test]
fn names_that_are_gits_elsewhere_are_left_out_and_named() {
    let place = Place::repository(&[("a", "1\n")]);
    // The owner may have such names, too, and keeps nothing else from the base by them.
    place.own("GIT~1", "mine\n");
    place.begin();
    let odd: [&[u8]; 7] = [
        b".GIT",
        b"git~1",
        b"sub\\.git",
        b".git \\hooks",
        ".g\u{200c}it".as_bytes(),
        "\u{feff}.GiT".as_bytes(),
        b".git::$INDEX_ALLOCATION",
    ];
    for name in odd {
        place.write([name, b"/hooks/pre-commit"].concat(), "evil\n");
    }
    for name in [".gitmodules", "gitmod~1", "gi~12345"] {
        place.link(name, "a");
    }
    place.write("a", "2\n");
    let review = review(&place);
    let left: Vec<&[u8]> = review
        .remarks
        .iter()
        .filter(|remark| remark.why == Why::Name)
        .map(|remark| remark.path.as_slice())
        .collect();
    for name in odd.iter().copied().chain([&b".gitmodules"[..], b"gitmod~1", b"gi~12345"]) {
        assert!(left.contains(&name), "{} is not in {left:?}", name.escape_ascii());
    }
    assert_eq!(review.files.len(), 1);
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    place.git(&["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "fsck", "--strict"]);
    assert_eq!(place.git(&["ls-tree", "-r", "--name-only", "b"]), "a");
}

#[test]
fn a_link_that_leads_out_is_told_whatever_it_is_called() {
    let place = Place::repository(&[("a", "1\n")]);
    fs::create_dir_all(place.owner().join("d/e")).unwrap();
    symlink("../../a", place.owner().join("d/e/inner")).unwrap();
    place.commit("a link that stays");
    place.begin();
    // The same link under another name has no line that differs.
    place.remove("d/e/inner");
    place.link("outer", "../../a");
    place.write("x\n/file", "x\n");
    place.link("long", "x\n/../../etc/passwd");
    place.link("d/up", "..");
    place.link("by-another", "d/up/../x");
    place.link("stays", "d/e");
    let review = review(&place);
    for name in ["outer", "long", "by-another"] {
        assert!(codes(&review, name.as_bytes()).contains(&"link-leaves"), "{name}");
    }
    assert_eq!(codes(&review, b"stays"), Vec::<&str>::new());
    assert_eq!(codes(&review, b"d/up"), Vec::<&str>::new());
}

#[test]
fn what_is_too_much_to_be_read_is_told_and_not_taken_for_harmless() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    // Each is text that is shown; together they are more than is.
    for number in 0..10 {
        place.write(format!("much-{number}"), "another line of a text that has many\n".repeat(200_000));
    }
    place.write("z.c", "if (x) { // \u{202e} }\n");
    place.write("package.json", format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20)));
    let review = review(&place);
    assert!(review.is_cut);
    assert!(codes(&review, b"z.c").contains(&"unread"));
    assert!(codes(&review, b"package.json").contains(&"install"));
    let order = Order { risky: Risky::Refused, ..place.order() };
    let error = workspace::apply_to_branch(&place.files(), &order, "b").unwrap_err();
    assert!(
        matches!(&error, ReviewError::Risky(told) if told.iter().any(|it| it.contains("z.c"))),
        "{error}"
    );
    let error = workspace::choices(&place.files(), &[]).unwrap_err();
    assert!(matches!(error, ReviewError::TooMuch { .. }), "{error}");
    // What the owner takes without that is taken as a whole.
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["rev-parse", "b^{tree}"]), review.tree);
}

#[test]
fn a_layer_over_its_limits_is_refused_with_the_limit() {
    let refused = |place: &Place, limit: &str| {
        let error = workspace::review(&place.files(), &[]).unwrap_err();
        assert!(matches!(error, ReviewError::TooMuch { .. }), "{error}");
        assert_eq!(error.to_string(), format!("there are more than {limit} in the changes"));
        assert!(error.hint().is_some());
        // What cannot be told is not thrown away either.
        assert!(workspace::is_waiting(&place.files()).is_err());
    };
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    place.write(format!("{}x", "d/".repeat(201)), "deep\n");
    refused(&place, "200 levels");

    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    place.write("large", "");
    // It takes no room on the disk.
    fs::File::options()
        .write(true)
        .open(place.upper().join("large"))
        .unwrap()
        .set_len((16 << 30) + 1)
        .unwrap();
    refused(&place, "17179869184 bytes");

    let place = Place::large_repository(&[("a", "1\n")]);
    place.begin();
    let deep = [b'd'; 200].iter().chain(b"/").copied().collect::<Vec<u8>>().repeat(13);
    place.write([deep.as_slice(), b"first"].concat(), "");
    let directory = place.upper().join(path(&deep));
    for number in 0..50_000_u32 {
        let name = format!("{number:0>200}");
        // As the same file, of which there can only be so many names.
        if number % 30_000 == 0 {
            fs::write(directory.join(&name), "").unwrap();
        } else {
            let first = format!("{:0>200}", number - number % 30_000);
            fs::hard_link(directory.join(first), directory.join(name)).unwrap();
        }
    }
    refused(&place, "134217728 bytes of names");
}

#[test]
fn paths_that_are_too_long_are_left_out_and_named() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    let long = [b'n'; 255].iter().chain(b"/").copied().collect::<Vec<u8>>().repeat(12);
    place.write([long.as_slice(), b"x"].concat(), "long\n");
    place.write("a", "2\n");
    let review = review(&place);
    assert_eq!(review.files.len(), 1);
    assert!(review.remarks.iter().any(|remark| remark.why == Why::Long), "{:?}", review.remarks);
}

#[test]
fn an_object_that_says_it_is_enormous_is_not_made_room_for() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    let tip = "1".repeat(40);
    place.write(".git/HEAD", format!("{tip}\n"));
    // A pack of one tree, of which it says that it has three gigabytes.
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    let mut size: u64 = 3 << 30;
    let mut byte = 0x20 | (size & 15) as u8;
    size >>= 4;
    while size > 0 {
        pack.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    pack.push(byte);
    pack.extend_from_slice(&[0x78, 0x9c, 0x03, 0, 0, 0, 0, 1]);
    pack.extend_from_slice(&[0; 20]);
    let error = workspace::accept_pack(&place.files(), &mut pack.as_slice(), &tip).unwrap_err();
    let ReviewError::Git(error) = error else { panic!("{error}") };
    let said = std::error::Error::source(&error).unwrap().to_string();
    assert!(said.contains("over limit"), "{said}");
}

#[test]
fn attributes_of_the_agents_hide_nothing_and_start_nothing() {
    let place = Place::repository(&[("a", "1\n"), ("text", "one\ntwo\n")]);
    place.git(&["config", "filter.lfs.clean", "touch ran; cat"]);
    place.git(&["config", "filter.lfs.required", "true"]);
    place.git(&["config", "diff.evil.textconv", "touch ran"]);
    place.begin();
    let attributes =
        "[attr]evil -diff filter=lfs diff=evil -text\n* evil binary\n*.c working-tree-encoding=UTF-16\n";
    place.write(".gitattributes", attributes);
    place.write("text", "one\nchanged\n");
    place.write("code.c", "int main;\r\n");
    let review = review(&place);
    let changed = review.files.iter().find(|file| file.change.path == b"text").unwrap();
    assert!(!changed.change.is_binary() && changed.change.hunks.len() == 1);
    assert!(codes(&review, b".gitattributes").contains(&"git-settings"));
    let code = format!("{}:code.c", review.tree);
    assert_eq!(place.git_in(&place.files().git(), &["cat-file", "-s", &code]), "11");
    assert!(!place.owner().join("ran").exists() && !place.files().git().join("ran").exists());
}

#[test]
fn nothing_outside_is_read_however_fast_a_way_changes() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    const SECRET: &str = "nobody inside has ever seen this\n";
    let place = Place::repository(&[("d/file", "1\n"), ("plain", "1\n")]);
    place.begin();
    fs::create_dir_all(place.at("outside/deep")).unwrap();
    for name in ["outside/file", "outside/deep/file", "outside/.gitignore", "outside/.gitattributes"] {
        fs::write(place.at(name), SECRET).unwrap();
    }
    place.write("d/file", "2\n");
    place.write("d/deep/file", "2\n");
    place.write("plain", "2\n");
    // A directory, a link to one that is outside, and a file, in turn; and so for a file.
    let (ends, upper, outside) = (Arc::new(AtomicBool::new(false)), place.upper(), place.at("outside"));
    let swap = {
        let ends = Arc::clone(&ends);
        std::thread::spawn(move || {
            let (held, other) = (upper.join(".git-held"), upper.join(".git-other"));
            fs::create_dir_all(upper.join(".git")).unwrap();
            let mut count = 0_u64;
            while !ends.load(Ordering::Relaxed) {
                for (path, target) in
                    [(upper.join("d"), outside.clone()), (upper.join("plain"), outside.join("file"))]
                {
                    symlink(&target, &other).unwrap();
                    fs::rename(&path, &held).unwrap();
                    fs::rename(&other, &path).unwrap();
                    fs::remove_file(&path).unwrap();
                    fs::rename(&held, &path).unwrap();
                }
                count += 1;
            }
            count
        })
    };
    let mut looks = 0;
    for _ in 0..20 {
        // It may say that something has gone on its way; it never says what is outside.
        looks += u32::from(workspace::review(&place.files(), &[]).is_ok());
    }
    ends.store(true, Ordering::Relaxed);
    assert!(swap.join().unwrap() > 100 && looks > 0, "nobody raced");
    let store = place.files().git();
    let all = place
        .git_in(&store, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]);
    for object in all.lines().filter_map(|line| line.strip_suffix(" blob")) {
        assert_ne!(place.git_in(&store, &["cat-file", "-p", object]), SECRET.trim_end());
    }
}
