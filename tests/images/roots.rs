//! Sandboxes that start from images: what is there, whose it is, what is written and where that goes.

use harness::{Agentbox, callers, stands};
use policy::Wall;
use serde_json::json;

use crate::layout::Layout;
use crate::place::{Place, busybox, seen};
use crate::tar::Tar;

callers!(an_image_without_a_libc_runs_and_stays_as_it_is, |caller| {
    let place = Place::new(caller);
    let layer = busybox().directory("srv/", 0o777, (0, 0)).file("srv/here", b"of the image\n");
    place.import(&Layout::of(&[layer.finish()]), "bb:1").assert_success();
    let before = seen(&place.store().join("layers"));
    let script = "cat /srv/here; id -u; pwd; echo new > /srv/new; rm /srv/here; mkdir /srv/d; ls /srv; \
                  test -e /usr/bin/env && echo the host is here; test -e /host && echo and all of it; \
                  cat /proc/self/status | grep -c ^Name; echo x > /dev/null; echo $HOME; \
                  touch /tmp/a /workspace/b /home/agent/c /mnt/user-data/outputs/d && echo writable; \
                  mkdir /new 2>/dev/null || echo sealed; readlink /proc/1/exe; ls /.agentbox/l /.agentbox/image";
    let out = place.run("bb:1", script);
    let expected = "of the image\n1000\n/workspace\nd\nnew\n1\n/home/agent\nwritable\nsealed\n\
                    /.agentbox/image:\n\n/.agentbox/l:\n0\n";
    assert_eq!(out, expected);
    assert_eq!(seen(&place.store().join("layers")), before, "what is written goes elsewhere");
    assert_eq!(
        place.run("bb:1", "cat /srv/here; ls /srv"),
        "of the image\nhere\n",
        "and ends with its sandbox"
    );
});

callers!(everybody_is_who_they_are_in_the_image, |caller| {
    let place = Place::new(caller);
    let tar = busybox()
        .directory("data/", 0o755, (33, 44))
        .entry(crate::tar::Entry {
            name: "data/mine",
            owner: (1000, 1000),
            mode: 0o600,
            ..crate::tar::Entry::PLAIN
        })
        .entry(crate::tar::Entry { name: "data/last", owner: (65534, 65534), ..crate::tar::Entry::PLAIN })
        .entry(crate::tar::Entry { name: "data/beyond", owner: (70000, 99999), ..crate::tar::Entry::PLAIN });
    let imported = place.import(&Layout::of(&[tar.finish()]), "ids:1");
    let told = imported.assert_success().stderr();
    assert!(told.contains("note: 1 files have owners above 65534"), "{told}");
    let out = place
        .run("ids:1", "stat -c %u:%g /data /data/mine /data/last /data/beyond /bin; echo x > /data/mine");
    let expected = match caller {
        Caller::Root | Caller::Subordinate => "33:44\n1000:1000\n65534:65534\n65534:65534\n0:0\n",
        Caller::Single => "1000:1000\n1000:1000\n1000:1000\n1000:1000\n1000:1000\n",
    };
    assert_eq!(out, expected);
    if caller != Caller::Single {
        let run =
            place.agentbox().options(["--image", "ids:1"]).run(["/bin/sh", "-c", "echo x > /data/last"]);
        assert_ne!(run.code, 0, "the agent is not its owner");
    }
});

callers!(an_image_says_how_it_is_run_and_the_owner_has_the_last_word, |caller| {
    let place = Place::new(caller);
    let passwd = b"root:x:0:0::/root:/bin/sh\nweb:x:1000:1000::/srv/web:/bin/sh\n";
    let tar = busybox().file("etc/passwd", passwd).directory("srv/web/", 0o755, (1000, 1000));
    let config = json!({
        "Entrypoint": ["/bin/echo", "always"], "Cmd": ["by default"], "User": "web", "WorkingDir": "/srv/web",
        "Env": ["PATH=/bin", "OF=image", "GIVEN=image", "odd.name=x"],
    });
    let layout = Layout { config: Some(config), ..Layout::of(&[tar.clone().finish()]) };
    place.import(&layout, "app:1").assert_success();
    let run = |options: &[&str], command: &[&str]| {
        let mut words = vec!["run", "--image", "app:1"];
        words.extend(options);
        if !command.is_empty() {
            words.push("--");
            words.extend(command);
        }
        place.say(&words).assert_success().stdout()
    };
    assert_eq!(run(&[], &[]), "always by default\n");
    assert_eq!(run(&[], &["given"]), "always given\n");
    assert_eq!(run(&["--entrypoint", ""], &["/bin/pwd"]), "/srv/web\n");
    let show = "echo $OF $GIVEN $HOME $USER $PATH; id -un; pwd";
    assert_eq!(
        run(&["--entrypoint", "/bin/sh", "--env", "GIVEN=owner"], &["-c", show]),
        "image owner /srv/web web /bin\nweb\n/srv/web\n"
    );
    assert_eq!(run(&["--entrypoint", "", "--workdir", "/tmp"], &["/bin/pwd"]), "/tmp\n");
    assert_eq!(run(&["--entrypoint", "", "--user", "agent"], &["/bin/id", "-u"]), "1000\n");
    // A directory to start in that nobody made is made.
    let config = json!({"WorkingDir": "/srv/a/b", "User": "0:0"});
    let layout = Layout { config: Some(config), ..Layout::of(&[tar.finish()]) };
    place.import(&layout, "app:2").assert_success();
    assert_eq!(place.run("app:2", "pwd; id -u; touch x && echo mine"), "/srv/a/b\n1000\nmine\n");
    let run = place.agentbox().options(["--image", "app:2", "--workdir", "/none/of/it"]).run(["/bin/pwd"]);
    assert_eq!(run.assert_success().stdout(), "/none/of/it\n");
    let run = place.agentbox().options(["--image", "app:2"]).run(["/bin/no/such"]);
    assert_eq!(run.code, 127, "{}", run.stderr());
});

callers!(another_user_of_the_image_is_one_or_it_is_said, |caller| {
    let place = Place::new(caller);
    let tar = busybox().file("etc/passwd", b"db:x:999:998::/var/db:/bin/sh\n").directory(
        "var/db/",
        0o700,
        (999, 998),
    );
    let layout = Layout { config: Some(json!({"User": "db"})), ..Layout::of(&[tar.finish()]) };
    place.import(&layout, "db:1").assert_success();
    let run =
        place.agentbox().options(["--image", "db:1"]).run(["/bin/sh", "-c", "id -u; id -g; touch /var/db/x"]);
    match caller {
        Caller::Single => {
            assert_eq!(run.assert_success().stdout(), "1000\n1000\n");
            assert!(
                run.stderr().contains("note: the image runs as 999:998, whom you cannot be"),
                "{}",
                run.stderr()
            );
        }
        Caller::Root | Caller::Subordinate => assert_eq!(run.assert_success().stdout(), "999\n998\n"),
    }
});

callers!(what_is_written_over_an_image_is_limited, |caller| {
    let place = Place::new(caller);
    let layer = busybox().directory("srv/", 0o777, (0, 0));
    place.import(&Layout::of(&[layer.finish()]), "bb:1").assert_success();
    stands(caller, Wall::DiskLimit, &|agentbox: &dyn Fn() -> Agentbox| {
        let run = place.with(agentbox()).options(["--image", "bb:1", "--disk", "8M"]).run([
            "/bin/dd",
            "if=/dev/zero",
            "of=/srv/large",
            "bs=1M",
            "count=12",
        ]);
        match run.code {
            0 => Err("12 MiB were written where there is room for 8".to_owned()),
            _ => Ok(()),
        }
    });
});

callers!(a_created_sandbox_starts_again_and_keeps_its_image, |caller| {
    let place = Place::new(caller);
    place.import(&Layout::of(&[busybox().finish()]), "bb:1").assert_success();
    let name = format!("images-{}-{}", caller.user(), std::process::id());
    let id = place
        .say(&["create", "--name", &name, "--image", "bb:1"])
        .assert_success()
        .stdout()
        .trim()
        .to_owned();
    let removed = place.say(&["image", "rm", "bb:1"]);
    assert_eq!(
        removed.assert_code(125).stderr().lines().next(),
        Some(format!("error: the image 'bb:1' is used by {id}").as_str())
    );
    // Listed under another digest its layers are no image's any more, and still the sandbox's.
    place.import(&Layout::of(&[busybox().file("other", b"x").finish()]), "bb:1").assert_success();
    place.say(&["exec", &id, "--", "/bin/touch", "/workspace/kept"]).assert_success();
    place.say(&["stop", &id]).assert_success();
    place.say(&["image", "gc"]).assert_success();
    place.say(&["start", &id]).assert_success();
    assert_eq!(place.say(&["exec", &id, "--", "/bin/ls", "/workspace"]).assert_success().stdout(), "kept\n");
    place.say(&["rm", "--force", &id]).assert_success();
    let before = place.layers().len();
    assert_eq!(before, 2);
    let mut digests = place
        .say(&["image", "ls", "--quiet"])
        .assert_success()
        .stdout()
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    digests.dedup();
    assert_eq!(digests.len(), 2, "the one that lost its name is still listed");
    for digest in &digests {
        place.say(&["image", "rm", digest]).assert_success();
    }
    place.say(&["image", "gc"]).assert_success();
    assert_eq!(place.layers(), Vec::<String>::new());
    assert!(std::fs::read_dir(place.store().join("blobs/sha256")).unwrap().next().is_none());
});

callers!(what_was_written_is_kept_as_a_new_image, |caller| {
    let place = Place::new(caller);
    let layer = busybox()
        .directory("srv/", 0o777, (0, 0))
        .file("srv/old", b"old")
        .directory("srv/full/", 0o777, (0, 0))
        .file("srv/full/a", b"a");
    place.import(&Layout::of(&[layer.finish()]), "bb:1").assert_success();
    let name = format!("commit-{}-{}", caller.user(), std::process::id());
    let id = place
        .say(&["create", "--name", &name, "--image", "bb:1"])
        .assert_success()
        .stdout()
        .trim()
        .to_owned();
    let script = "cd /srv; echo new > new; rm old; rm -r full; mkdir full; echo b > full/b; ln new hard; ln -s new soft; \
                  mkdir -m 700 /home/agent/.tool; echo t > /home/agent/.tool/t; echo no > /workspace/no; echo no > /tmp/no";
    place.say(&["exec", &id, "--", "/bin/sh", "-c", script]).assert_success();
    place.say(&["commit", &id, "bb:2"]).assert_success();
    place.say(&["exec", &id, "--", "/bin/touch", "/srv/later"]).assert_success();
    place.say(&["rm", "--force", &id]).assert_success();
    let look = "cd /srv; ls; cat new; ls full; stat -c '%h %u' new; readlink soft; cat /home/agent/.tool/t; \
                stat -c '%a %u' /home/agent/.tool; ls /workspace /tmp; grep -c nameserver /etc/resolv.conf";
    let links = "2 1000";
    let expected =
        format!("full\nhard\nnew\nsoft\nnew\nb\n{links}\nnew\nt\n700 1000\n/tmp:\n\n/workspace:\n1\n");
    assert_eq!(place.run("bb:2", look), expected);
    assert_eq!(place.run("bb:1", "cat /srv/old; ls /srv/full"), "olda\n");
    assert_eq!(place.layers().len(), 2, "the base is shared");
    let refused = place.say(&["commit", "nobody", "x:1"]);
    refused.assert_code(125);
});

callers!(trees_of_the_owners_are_shown_in_an_image, |caller| {
    let place = Place::new(caller);
    let tar = busybox().directory("srv/", 0o755, (0, 0)).link("data", "/srv").file("srv/own", b"own");
    place.import(&Layout::of(&[tar.finish()]), "bb:1").assert_success();
    let tree = place.path("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("file"), "the owner's").unwrap();
    caller.own(&tree);
    let source = tree.display().to_string();
    let run = |target: &str| {
        let mount = format!("{source}:{target}");
        place.agentbox().options(["--image", "bb:1", "--mount", &mount]).run([
            "/bin/sh",
            "-c",
            &format!("cat {target}/file; ls /srv"),
        ])
    };
    assert_eq!(run("/srv/deep/er").assert_success().stdout(), "the owner'sdeep\nown\n");
    assert_eq!(run("/elsewhere").assert_success().stdout(), "the owner'sown\n");
    let refused = run("/data/x");
    assert!(
        refused.assert_code(125).stderr().contains("the image has a link at '/data'"),
        "{}",
        refused.stderr()
    );
    let workspace = place.agentbox().options(["--image", "bb:1", "--workspace", &source]);
    let out = workspace.run(["/bin/sh", "-c", "cat file; echo changed > file; pwd"]);
    assert_eq!(out.assert_success().stdout(), "the owner's/workspace\n");
    assert_eq!(std::fs::read_to_string(tree.join("file")).unwrap(), "the owner's");
});

callers!(an_image_of_nothing_is_one, |caller| {
    let place = Place::new(caller);
    place.import(&Layout::default(), "none:1").assert_success();
    let run = place.agentbox().options(["--image", "none:1"]).run(["/bin/sh"]);
    assert_eq!(run.code, 127, "{}", run.stderr());
    place.import(&Layout::of(&[Tar::default().finish()]), "none:2").assert_success();
    let run = place.agentbox().options(["--image", "none:2"]).run(["/bin/sh"]);
    assert_eq!(run.code, 127, "{}", run.stderr());
});
