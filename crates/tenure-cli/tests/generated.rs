//! Output that is generated from the definitions of the arguments: completions, the manual, and the version.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Did, Home, did, shell, skipped};

const COMMANDS: [&str; 21] = [
    "run",
    "elect",
    "hold",
    "acquire",
    "renew",
    "release",
    "steal",
    "leader",
    "resign",
    "status",
    "ls",
    "slots",
    "watch",
    "history",
    "forget",
    "kv",
    "fence",
    "store",
    "demo",
    "completions",
    "man",
];

#[test]
fn bash_completes_commands_and_options_from_the_script() {
    let home = Home::new("bash");
    let script = home.tenure(&["completions", "bash"]);
    assert_eq!((script.code, script.err.as_str()), (0, ""));
    let path = home.write("tenure.bash", &script.out);
    if !shell("command -v bash >/dev/null") {
        return skipped("bash is not installed");
    }
    let bash = |text: &str| -> Did { did(Command::new("bash").args(["--norc", "-c", text]).arg(&path)) };
    bash("bash -n \"$0\"").answered(0, "");
    let complete = |words: &[&str]| {
        let at = words.len() - 1;
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let completed = bash(&format!(
            "source \"$0\"; COMP_WORDS=({}); COMP_CWORD={at}; \
             _tenure tenure \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" ")
        ));
        assert_eq!((completed.code, completed.err.as_str()), (0, ""));
        completed.out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = complete(&["tenure", ""]);
    for command in COMMANDS {
        assert!(commands.iter().any(|offered| offered == command), "{command}: {commands:?}");
    }
    assert!(!commands.iter().any(|offered| offered == "demo-worker"), "it is a part of demo");
    assert_eq!(complete(&["tenure", "forg"]), ["forget"]);
    assert_eq!(complete(&["tenure", "forget", "--vac"]), ["--vacant-for"]);
    assert_eq!(complete(&["tenure", "store", "guar"]), ["guarantees"]);
    assert_eq!(complete(&["tenure", "completions", "fi"]), ["fish"]);
}

#[test]
fn every_shell_has_a_completion_script_with_every_command() {
    let home = Home::new("shells");
    for (name, check) in [
        ("bash", "bash -n"),
        ("zsh", "zsh -n"),
        ("fish", "fish --no-execute"),
        ("elvish", ""),
        ("powershell", ""),
    ] {
        let script = home.tenure(&["completions", name]);
        assert_eq!((script.code, script.err.as_str()), (0, ""), "{name}");
        for command in COMMANDS {
            assert!(script.out.contains(command), "{name} lacks {command}");
        }
        if !check.is_empty() && shell(&format!("command -v {name} >/dev/null")) {
            let path = home.write(name, &script.out);
            assert!(shell(&format!("{check} {}", path.display())), "{name}");
        }
    }
}

#[test]
fn the_manual_has_a_readable_page_for_every_command() {
    let home = Home::new("man");
    let page = home.tenure(&["man"]);
    assert_eq!((page.code, page.err.as_str()), (0, ""));
    assert!(page.out.contains(".TH tenure 1"), "{}", page.out);
    let directory = home.0.join("share/man1");
    home.tenure(&["man", "--out", directory.to_str().unwrap()]).answered(0, "");
    let written = |name: &str| {
        std::fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert!(written("tenure-store-guarantees.1").contains(".TH tenure-store-guarantees 1"));
    for command in COMMANDS {
        let page = written(&format!("tenure-{command}.1"));
        for section in [".SH \"EXAMPLES\"\n", ".SH \"EXIT STATUS\"\n"] {
            assert!(page.contains(section), "{command} lacks {section}");
        }
    }
    if !shell("command -v groff >/dev/null") {
        return skipped("groff is not installed: the manual is not rendered");
    }
    let rendered = render(&page.out);
    assert_eq!(rendered.err, "", "groff has nothing to complain about");
    let example = "tenure run backup --no-wait -- backup --all\n              exit 75 if it is held\n";
    assert!(rendered.out.contains(example), "{}", rendered.out);
    for words in COMMANDS
        .iter()
        .map(|command| format!("tenure-{command}(1)"))
        .chain(["EXAMPLES", "EXIT STATUS", "NOTES", "TENURE_STORE"].map(str::to_owned))
    {
        assert!(rendered.out.contains(&words), "{words}:\n{}", rendered.out);
    }
    let rendered = render(&written("tenure-forget.1"));
    assert_eq!(rendered.err, "");
    assert!(rendered.out.contains("--vacant-for"), "{}", rendered.out);
}

/// Renders a page like `man -l -`, without its pager.
fn render(page: &str) -> Did {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u"]);
    let mut groff =
        groff.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    groff.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = groff.wait_with_output().unwrap();
    // Hyphens are soft or hard, depending on the fonts.
    let out = String::from_utf8(output.stdout).unwrap().replace(['‐', '−'], "-");
    Did { code: output.status.code().unwrap(), out, err: String::from_utf8(output.stderr).unwrap() }
}

#[test]
fn a_manual_that_cannot_be_written_is_an_error_with_the_next_step() {
    let home = Home::new("man-nowhere");
    let file = home.write("file", "");
    let did = home.tenure(&["man", "--out", file.to_str().unwrap()]);
    assert_eq!((did.code, did.out.as_str()), (69, ""));
    assert!(
        did.err.contains(file.to_str().unwrap()) && did.err.contains("Name a writable directory"),
        "{}",
        did.err
    );
}

// ── the version ─────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_version_names_the_commit_it_was_built_from() {
    let home = Home::new("version");
    let did = home.tenure(&["--version"]);
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    let version = format!("tenure {}", env!("CARGO_PKG_VERSION"));
    let git = |args: &[&str]| git(Path::new(env!("CARGO_MANIFEST_DIR")), args);
    match git(&["rev-parse", "--show-prefix"]).filter(|prefix| prefix == "crates/tenure-cli/") {
        Some(_) => {
            let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap();
            let clean = format!("{version} ({commit})\n");
            let dirty = format!("{version} ({commit}-dirty)\n");
            assert!([clean, dirty].contains(&did.out), "{commit}: {}", did.out);
        }
        None => assert_eq!(did.out, format!("{version}\n")),
    }
}

/// The version and the watched files from the build script, run in the same way as by cargo.
fn said(script: &Path, crate_directory: &Path) -> (String, Vec<String>) {
    let did = did(Command::new(script).current_dir(crate_directory).env("CARGO_PKG_VERSION", "1.2.3"));
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    let value = |line: &str, name: &str| line.strip_prefix(name).map(str::to_owned);
    let version = did.out.lines().find_map(|line| value(line, "cargo:rustc-env=TENURE_VERSION=")).unwrap();
    (version, did.out.lines().filter_map(|line| value(line, "cargo:rerun-if-changed=")).collect())
}

fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let names = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"];
    let output = git.current_dir(directory).args(names).args(args).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn the_build_script_handles_checkouts_worktrees_archives_and_vendored_copies() {
    let home = Home::new("build-script");
    let script = home.0.join("build-script");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let built = Command::new(rustc).args(["--edition=2024", "-o"]).arg(&script).arg(source).status();
    if !built.is_ok_and(|built| built.success()) || !shell("command -v git >/dev/null") {
        return skipped("there is no rustc or no git here");
    }
    let repository = home.0.join("repository");
    let one = repository.join("crates/tenure-cli");
    std::fs::create_dir_all(one.join("src")).unwrap();
    std::fs::write(one.join("src/main.rs"), "fn main() {}").unwrap();
    // An archive: no repository, or one that is not Tenure's.
    assert_eq!(said(&script, &one), ("1.2.3".to_owned(), vec!["build.rs".to_owned()]));
    let run =
        |directory: &Path, args: &[&str]| git(directory, args).unwrap_or_else(|| panic!("git {args:?}"));
    run(&repository, &["init", "--quiet"]);
    assert_eq!(said(&script, &one).0, "1.2.3", "there is no commit yet");
    run(&repository, &["add", "."]);
    run(&repository, &["commit", "--quiet", "-m", "first"]);
    let commit = run(&repository, &["rev-parse", "--short=10", "HEAD"]);
    let (version, watched) = said(&script, &one);
    assert_eq!(version, format!("1.2.3 ({commit})"));
    let exists = |path: &&String| one.join(path).exists() || *path == "build.rs";
    assert!(
        watched.iter().all(|path| exists(&path)),
        "a missing file would build anew each time: {watched:?}"
    );
    for ending in [".git/HEAD", ".git/refs/heads/main", "tenure-cli/src"] {
        assert!(watched.iter().any(|path| path.ends_with(ending)), "{ending}: {watched:?}");
    }
    std::fs::write(one.join("src/main.rs"), "fn main() { }").unwrap();
    assert_eq!(said(&script, &one).0, format!("1.2.3 ({commit}-dirty)"));

    // A worktree, whose .git is a file.
    let other = home.0.join("worktree");
    run(&repository, &["worktree", "add", "--quiet", "-b", "side", other.to_str().unwrap()]);
    let (version, watched) = said(&script, &other.join("crates/tenure-cli"));
    assert_eq!(version, format!("1.2.3 ({commit})"));
    for ending in [".git/worktrees/worktree/HEAD", ".git/refs/heads/side"] {
        assert!(watched.iter().any(|path| path.ends_with(ending)), "{ending}: {watched:?}");
    }

    // Copied into another repository, as `cargo vendor` does.
    let vendored = repository.join("vendor/tenure-cli");
    std::fs::create_dir_all(&vendored).unwrap();
    assert_eq!(said(&script, &vendored).0, "1.2.3");
}

// ── names from the store ────────────────────────────────────────────────────────────────────────────────────────────

/// A home with a completion script for bash, and leases of these names.
fn home_with_names(name: &str, leases: &[&str]) -> Home {
    let home = Home::new(name);
    home.write("tenure.bash", &home.tenure(&["completions", "bash"]).out);
    for lease in leases {
        home.tenure(&["run", lease, "--", "true"]).answered(0, "");
    }
    home
}

/// The completions of a line by bash. The last word is at the cursor.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let script = format!(
        "source \"$HOME/tenure.bash\"; COMP_WORDS=({}); COMP_CWORD={}; \
         _tenure tenure \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1
    );
    let directory = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap().display();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script]).env_clear().env("HOME", &home.0).env("PATH", path);
    let completed = did(bash.current_dir(&home.0));
    assert_eq!((completed.code, completed.err.as_str()), (0, ""));
    completed.out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn has_bash() -> bool {
    shell("command -v bash >/dev/null")
}

#[test]
fn bash_completes_the_names_of_leases_and_groups_from_the_store() {
    if !has_bash() {
        return skipped("bash is not installed");
    }
    let home = home_with_names("names-bash", &["backup", "billing/hourly", "billing/nightly"]);
    home.tenure(&["run", "gpu", "--slots", "2", "--", "true"]).answered(0, "");
    for command in
        ["run", "elect", "acquire", "steal", "leader", "resign", "status", "history", "ls", "watch", "forget"]
    {
        let all = completed(&home, &["tenure", command, ""]);
        assert_eq!(all, ["backup", "billing/hourly", "billing/nightly"], "{command}");
        assert_eq!(completed(&home, &["tenure", command, "bi"]), ["billing/hourly", "billing/nightly"]);
        assert_eq!(completed(&home, &["tenure", command, "billing/n"]), ["billing/nightly"]);
    }
    assert_eq!(completed(&home, &["tenure", "slots", ""]), ["gpu"]);
    assert_eq!(completed(&home, &["tenure", "run", "--slots", "2", "g"]), ["gpu"]);
    assert_eq!(
        completed(&home, &["tenure", "status", "--js"]),
        ["--json"],
        "options are completed as before"
    );
    let after = completed(&home, &["tenure", "run", "backup", "--", "ba"]);
    assert!(!after.contains(&"backup".to_owned()), "CMD is no lease: {after:?}");
}

#[test]
fn bash_completes_names_from_the_store_that_the_line_names() {
    if !has_bash() {
        return skipped("bash is not installed");
    }
    let home = home_with_names("names-store", &["default"]);
    let other = home.0.join("other");
    let url = tenure::store::File::url_of(&other);
    home.tenure(&["--store", &url, "run", "a:b", "--", "true"]).answered(0, "");
    let path = url.strip_prefix("file:").unwrap();
    // Bash makes words of their own of the colon and of the equals sign.
    assert_eq!(completed(&home, &["tenure", "--store", "file", ":", path, "status", ""]), ["a:b"]);
    assert_eq!(completed(&home, &["tenure", "status", "--store", "=", "file", ":", path, "a"]), ["a:b"]);
    assert_eq!(completed(&home, &["tenure", "--store", "file", ":", path, "status", "a", ":", ""]), ["b"]);
    assert_eq!(completed(&home, &["tenure", "status", ""]), ["default"]);
}

#[test]
fn hostile_names_are_not_completed_and_nothing_is_executed() {
    if !has_bash() {
        return skipped("bash is not installed");
    }
    let hostile =
        ["a b", "$(touch x)", "`touch x`", "a;touch x", "a'b", "a\"b", "a\\b", "*", "~", "a|b", "a&b", "!1"];
    let names: Vec<&str> = hostile.into_iter().chain(["safe"]).collect();
    let home = home_with_names("names-hostile", &names);
    assert_eq!(completed(&home, &["tenure", "status", ""]), ["safe"]);
    for name in hostile {
        let offered = completed(&home, &["tenure", "status", name]);
        assert!(
            offered.iter().all(|offered| names.iter().all(|name| offered != name)),
            "{name}: {offered:?}"
        );
    }
    assert!(!home.0.join("x").exists());
}

#[test]
fn names_are_completed_in_silence_and_nothing_is_created_or_changed() {
    let home = Home::new("names-silence");
    home.tenure(&["complete-names", "status", ""]).answered(0, "");
    assert_eq!(std::fs::read_dir(&home.0).unwrap().count(), 0, "not even a directory");
    let named = |url: &str| home.tenure(&["complete-names", "--store", url, "status", ""]);
    for url in ["nonsense", "file:///proc/self/x", "redis://127.0.0.1:1", "memory:", "", "s3://nowhere/x"] {
        named(url).answered(0, "");
    }
    for words in [&["complete-names"][..], &["complete-names", ""], &["complete-names", "--", ""]] {
        home.tenure(words).answered(0, "");
    }
    home.tenure(&["run", "x", "--", "true"]).answered(0, "");
    let files = || {
        let found = std::process::Command::new("find")
            .arg(&home.0)
            .args(["-printf", "%p %T@ %C@\n"])
            .output()
            .unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    let before = files();
    home.tenure(&["complete-names", "status", ""]).answered(0, "x\n");
    assert_eq!(files(), before);
}

#[test]
fn a_store_that_does_not_answer_delays_a_prompt_for_no_longer_than_its_limit() {
    let home = Home::new("names-slow");
    // It accepts a connection, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    home.tenure(&["complete-names", "--store", &url, "status", ""]).answered(0, "");
}

#[test]
fn the_scripts_of_zsh_and_fish_ask_for_names_where_a_command_takes_one() {
    let home = Home::new("names-shells");
    let zsh = home.tenure(&["completions", "zsh"]).out;
    // run, elect, hold, acquire, steal, leader, resign, status, history; ls, slots, watch, forget; five of kv.
    assert!(zsh.matches(":_tenure_names' \\\n").count() >= 18, "{zsh}");
    for line in zsh.lines().filter(|line| line.contains(":_tenure_names'")) {
        assert!(
            ["':name -- ", "'::prefix -- ", "'::group -- ", "':key -- ", "':prefix -- "]
                .iter()
                .any(|begin| line.starts_with(begin)),
            "{line}"
        );
    }
    assert!(
        zsh.contains("_tenure_names() {") && zsh.contains("_tenure_words=(\"${(@Q)words[1,CURRENT-1]}\")")
    );
    let fish = home.tenure(&["completions", "fish"]).out;
    assert!(
        fish.ends_with("-a \"(__tenure_names)\"\n") && fish.contains("function __tenure_names\n"),
        "{fish}"
    );
    for (name, script, check) in [("zsh", zsh, "zsh -n"), ("fish", fish, "fish --no-execute")] {
        if !shell(&format!("command -v {name} >/dev/null")) {
            skipped(&format!("{name} is not installed: its script is not executed"));
            continue;
        }
        let path = home.write(name, &script);
        assert!(shell(&format!("{check} {}", path.display())), "{name}");
    }
}
