//! What usually holds secrets is absent inside, unless git tracks it or the owner wants it shown.

use std::fs;

use harness::callers;

use crate::project::Project;

callers!(secrets_are_absent_unless_tracked, |caller| {
    let project = Project::repository(caller);
    for name in [
        ".env",
        "src/.env.local",
        "id_rsa",
        "tls.key",
        ".aws/config",
        ".kube/config",
        "src/.ssh/deep/any",
        "x.tfvars",
    ] {
        project.write(name, "SECRET\n");
    }
    for name in ["test.pem", ".env.test", ".ssh/known", "id_rsa.pub", ".env.example", "config"] {
        project.write(name, "shown\n");
    }
    project.write(".ssh/private", "SECRET\n");
    project.git(&["add", "-f", "test.pem", ".env.test", ".ssh/known"]);
    project.git(&["commit", "-qm", "fixtures"]);
    let shown = project.run(
        "grep -r SECRET . ; grep -rl shown . | grep -v '^./.git/' | sort; ls -A src .kube; git status -s; echo >left",
    );
    let expected = "./.env.example\n./.env.test\n./.ssh/known\n./config\n./id_rsa.pub\n./test.pem\n.kube:\n\nsrc:\ndeep\n\
                    ?? .env.example\n?? config\n?? id_rsa.pub\n";
    assert_eq!(shown, expected);
    let hidden = fs::read_to_string(project.only().join("review/hidden")).unwrap();
    let mut hidden: Vec<&str> = hidden.split_terminator('\0').collect();
    hidden.sort_unstable();
    let expected = [
        ".aws",
        ".env",
        ".kube/config",
        ".ssh/private",
        "id_rsa",
        "src/.env.local",
        "src/.ssh",
        "tls.key",
        "x.tfvars",
    ];
    assert_eq!(hidden, expected);
});

callers!(a_repository_among_secrets_is_not_read_though_something_there_is_tracked, |caller| {
    let project = Project::repository(caller);
    project.write(".ssh/known", "shown\n");
    project.write(".ssh/tools/.git/config", "SECRET\n");
    project.write(".ssh/tools/.git/HEAD", "ref: refs/heads/main\n");
    project.git(&["add", "-f", ".ssh/known"]);
    project.git(&["commit", "-qm", "fixtures"]);
    let shown = project.run("cat .ssh/known; grep -rs SECRET .; ls -A .ssh/tools; echo > left");
    assert_eq!(shown, "shown\n");
    assert_eq!(fs::read_to_string(project.only().join("review/hidden")).unwrap(), ".ssh/tools/.git\0");
});

callers!(a_name_that_is_hidden_can_be_made_anew, |caller| {
    let project = Project::repository(caller);
    project.write(".env", "SECRET\n");
    project.write("src/.ssh/key", "SECRET\n");
    let script = "echo mine > .env; cat .env; mkdir src/.ssh; ls -A src/.ssh; echo k > src/.ssh/key; cat src/.ssh/key; rm .env; ls -A";
    assert_eq!(project.run(script), "mine\nk\n.git\nreadme\nsrc\n");
    assert_eq!(fs::read_to_string(project.path().join(".env")).unwrap(), "SECRET\n");
});

callers!(the_configuration_hides_and_shows, |caller| {
    let project = Project::repository(caller);
    project.write("data.sqlite", "SECRET\n");
    project.write("server.pem", "shown\n");
    project.write(".env", "SECRET\n");
    let configuration = project.place().join("config");
    let text = "[workspace]\nhide = ['*.sqlite']\nshow = ['*.pem']\n";
    project.write_at(&configuration.join("agentbox/config.toml"), text);
    let configured = || project.agentbox().env("XDG_CONFIG_HOME", &configuration.display().to_string());
    let path = project.path().display().to_string();
    let shown = configured().options(["-w", &path]).run(["sh", "-c", "ls -A"]);
    assert_eq!(shown.assert_success().stdout(), ".git\nreadme\nserver.pem\nsrc\n");
    let said = configured().start_words(&["config", "show"]).finish().assert_success().stdout();
    assert!(
        said.contains("workspace.hide = *.sqlite  (") && said.contains("workspace.show = *.pem  ("),
        "{said}"
    );
});
