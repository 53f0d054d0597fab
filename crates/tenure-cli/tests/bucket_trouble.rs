//! Problems with a bucket, or with the connection to it. Each has its own sentence with the next step, its exit code,
//! and shows no secret.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Did, Home, did, refused, sleep_ms};
use tenure::clock::{BootClock, Clock};
use tenure_testkit::{Authority, ErrorAnswer, Fault, FaultyProxy, Kind, Rule, Server, Setup};

/// Runs a command under a lease of this store, with the credentials in these variables, and checks that no secret is
/// shown.
fn run(server: &Server, url: &str, variables: &[(&str, String)]) -> Did {
    tenure(server, url, variables, &["run", "x", "--", "echo", "hi"])
}

fn tenure(server: &Server, url: &str, variables: &[(&str, String)], args: &[&str]) -> Did {
    let home = Home::new("trouble");
    let mut command = home.command(&["--store", url]);
    command.args(args).envs(server.environment()).env("PATH", "/usr/bin:/bin").env("RUST_LOG", "trace");
    command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
    let did = did(&mut command);
    let secrets = variables.iter().filter(|(name, _)| name.contains("SECRET") || name.contains("TOKEN"));
    for secret in secrets.map(|(_, value)| value.as_str()).chain([server.secret_key(), "hush"]) {
        assert!(!did.err.contains(secret) && !did.out.contains(secret), "{did:?}");
    }
    did
}

/// Serves these bytes to every client. Without any, it closes the connection at once.
fn answering(bytes: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test owns its server")]
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            if !bytes.is_empty() {
                let _ = connection.read(&mut [0; 4096]);
                let _ = connection.write_all(bytes.as_bytes());
            }
        }
    });
    address
}

fn minio(bucket: &str) -> Option<(&'static Server, String)> {
    let server = Server::shared(Kind::Minio)?;
    server.create_bucket(bucket);
    Some((server, format!("s3://{bucket}/locks?endpoint={}", server.endpoint())))
}

fn allowing(actions: &[&str]) -> String {
    let actions: Vec<String> = actions.iter().map(|action| format!("\"s3:{action}\"")).collect();
    let allow = format!(r#""Effect":"Allow","Action":[{}],"Resource":["arn:aws:s3:::*"]"#, actions.join(","));
    format!(r#"{{"Version":"2012-10-17","Statement":[{{{allow}}}]}}"#)
}

#[test]
fn a_missing_permission_is_named() {
    let Some((server, url)) = minio("rights") else { return };
    let with = |actions: &[&str]| server.session(&allowing(actions)).environment();
    let blind = run(server, &url, &with(&["PutObject", "ListBucket"]));
    refused(&blind, 69, &["the credentials may not read: allow s3:GetObject on the objects"]);
    let mute = run(server, &url, &with(&["GetObject", "ListBucket"]));
    refused(&mute, 69, &["the credentials may not write: allow s3:PutObject and s3:GetObject"]);
    // MinIO names the missing right to list. AWS does not, so the sentence about reads names it too.
    let unlisting = with(&["GetObject", "PutObject"]);
    assert_eq!(run(server, &url, &unlisting).code, 0);
    let ls = tenure(server, &url, &unlisting, &["ls"]);
    refused(&ls, 69, &["the credentials may not list: allow s3:ListBucket on rights"]);

    let looking = with(&["GetObject", "ListBucket"]);
    let look = |args: &[&str]| tenure(server, &format!("{url}&region=us-east-1"), &looking, args);
    assert_eq!(
        (look(&["ls"]).code, look(&["status", "never"]).code),
        (0, 1),
        "looking needs no right to write"
    );

    let mut stale = server.session(&allowing(&["GetObject", "PutObject"]));
    stale.token = stale.token.replace('e', "f");
    refused(&run(server, &url, &stale.environment()), 69, &["the session token is invalid or has expired"]);
}

#[test]
fn a_bucket_that_would_keep_every_renewal_is_refused() {
    let Some((server, _)) = minio("rights") else { return };
    let url = format!("s3://locked/locks?endpoint={}", server.endpoint());
    server.administer("PUT", "/locked", &[("x-amz-bucket-object-lock-enabled", "true")], "");
    assert_eq!(run(server, &url, &[]).code, 0, "that locks are possible does no harm");
    let rule = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
                <Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
    server.administer("PUT", "/fresh", &[("x-amz-bucket-object-lock-enabled", "true")], "");
    server.administer("PUT", "/fresh?object-lock", &[], rule);
    let did = run(server, &url.replace("locked", "fresh"), &[]);
    refused(&did, 77, &["the bucket \"fresh\" keeps every write", "use a bucket without such a rule"]);
    // This bucket passed the safety check before it had a rule.
    server.administer("PUT", "/locked?object-lock", &[], rule);
    let probed = tenure(server, &url, &[], &["probe", "--quiet"]);
    refused(&probed, 77, &["the bucket \"locked\" keeps every write"]);
    // The answer of AWS, which requires a checksum there.
    let aws = answering(
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<Error><Code>InvalidRequest</Code><Message>Content-MD5 \
         OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock \
         parameters</Message></Error>",
    );
    let did = run(server, &format!("s3://locked/locks?endpoint=http://{aws}"), &[]);
    refused(&did, 77, &["the bucket \"locked\" keeps every write", "use a bucket without such a rule"]);
}

#[test]
fn a_bucket_in_another_region_is_reported_with_its_region() {
    let setup = Setup::new().variable("MINIO_SITE_REGION", "eu-west-1");
    let Some(server) = Server::start_with_or_skip(Kind::Minio, setup) else { return };
    server.create_bucket("elsewhere");
    let url = format!("s3://elsewhere/locks?endpoint={}", server.endpoint());
    refused(
        &run(&server, &url, &[]),
        78,
        &["the bucket \"elsewhere\" is not here: write region=eu-west-1 in the URL"],
    );
    assert_eq!(run(&server, &format!("{url}&region=eu-west-1"), &[]).code, 0);
}

#[test]
fn a_missing_bucket_is_a_matter_of_configuration_for_every_command_and_ends_a_wait_at_once() {
    let Some((server, url)) = minio("found") else { return };
    let missing = url.replace("s3://found", "s3://never-made");
    let words =
        ["the store does not exist: there is no bucket \"never-made\": create it, or correct the URL"];
    let commands: [&[&str]; 9] = [
        &["run", "--wait", "1h", "x", "--", "true"],
        &["acquire", "x"],
        &["elect", "x", "--", "true"],
        &["status", "x"],
        &["ls"],
        &["history", "x"],
        &["leader", "x"],
        &["kv", "create", "x", "y"],
        &["kv", "get", "x"],
    ];
    for command in commands {
        refused(&tenure(server, &missing, &[], command), 78, &words);
    }
}

#[test]
fn a_holder_whose_bucket_is_deleted_loses_its_lease_and_the_next_run_reports_the_configuration() {
    let Some((server, url)) = minio("deleted") else { return };
    let home = Home::new("deleted");
    let run = |args: &[&str]| {
        let mut command = home.command(&["--store", &url, "run", "x"]);
        command.args(args).envs(server.environment()).env("PATH", "/usr/bin:/bin");
        command
    };
    let started = home.leases().with_file_name("started");
    let script = format!("echo >{}; sleep 600", started.display());
    let mut holder = run(&["--ttl", "4s", "--", "sh", "-c", &script]);
    let holder = holder.stderr(Stdio::piped()).spawn().unwrap();
    tenure_testkit::wait_until("CMD starts", || started.exists());
    server.administer("DELETE", "/deleted", &[("x-minio-force-delete", "true")], "");
    let lost = Did::from(holder.wait_with_output().unwrap());
    assert_eq!(lost.code, 76, "{lost:?}");
    assert!(lost.err.contains("the store does not exist: there is no bucket \"deleted\""), "{lost:?}");
    let next = did(&mut run(&["--wait", "1h", "--", "true"]));
    refused(&next, 78, &["the store does not exist: there is no bucket \"deleted\": create it"]);
}

#[test]
fn an_invalid_port_and_a_ttl_that_is_too_short_are_reported() {
    let Some((server, url)) = minio("numbers") else { return };
    for port in ["99999", "65536", "abc"] {
        let did = run(server, &format!("s3://numbers/x?endpoint=http://127.0.0.1:{port}"), &[]);
        refused(&did, 64, &["an endpoint is http:// or https://, a host, and a port"]);
    }
    let hasty = tenure(server, &url, &[], &["run", "x", "--ttl", "900ms", "--", "true"]);
    refused(&hasty, 78, &["accepts one write of a key every 100ms", "use a ttl of 1s or longer"]);
    let hasty = tenure(server, &url, &[], &["acquire", "x", "--ttl", "500ms"]);
    refused(&hasty, 78, &["accepts one write of a key every 100ms"]);
    refused(
        &run(server, &url.replace("/locks", "/.tenure/x"), &[]),
        64,
        &["Tenure keeps its own keys there"],
    );
}

#[test]
fn an_endpoint_that_is_not_s3_is_reported() {
    let Some((server, _)) = minio("rights") else { return };
    let at = |address: SocketAddr| run(server, &format!("s3://rights/locks?endpoint=http://{address}"), &[]);
    // The connection is closed or reset, depending on timing.
    refused(&at(answering("")), 69, &["it gave no clear answer"]);
    let ssh = at(answering("SSH-2.0-OpenSSH_9.2\r\n"));
    refused(&ssh, 69, &["does not speak HTTP: write https:// if it is encrypted"]);
    const PAGE: &str =
        "Content-Type: text/html\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hi</html>";
    for (status, code) in [("200 OK", 77), ("404 Not Found", 69), ("403 Forbidden", 69)] {
        let page = format!("HTTP/1.1 {status}\r\n{PAGE}").leak();
        refused(&at(answering(page)), code, &["does not speak S3"]);
    }
    let setup = Setup::new().encrypted(Authority::new().certify(&["localhost"]));
    let Some(encrypted) = Server::start_with_or_skip(Kind::Minio, setup) else { return };
    refused(&at(encrypted.address()), 77, &["it is encrypted there: write https:// in the endpoint"]);
    let url = format!("s3://rights/x?endpoint=https://localhost:{}", encrypted.address().port());
    let parts = [
        "is not signed by an authority that this machine trusts",
        "ca=/path/to/ca.pem in the URL, or in AWS_CA_BUNDLE",
    ];
    refused(&run(&encrypted, &url, &[]), 69, &parts);
}

#[test]
fn connection_problems_are_reported_without_the_password_of_a_proxy() {
    let Some((server, _)) = minio("rights") else { return };
    let url = "s3://rights/x?endpoint=https://s3.example.org";
    let by = |name: &'static str, value: &str| run(server, url, &[(name, value.to_owned())]);
    let gone = by("HTTPS_PROXY", "http://me:hush@127.0.0.1:1");
    refused(&gone, 69, &["the proxy http://127.0.0.1:1 could not be reached: Connection refused"]);
    refused(&by("ALL_PROXY", "socks5://me:hush@proxy"), 69, &["ALL_PROXY names a proxy that speaks SOCKS"]);
    refused(&by("https_proxy", "http://me:hush@/x"), 69, &["https_proxy is not the address of a proxy"]);
    refused(&by("AWS_CA_BUNDLE", "/nowhere.pem"), 69, &["the certificates in /nowhere.pem cannot be read"]);
    let did = run(server, &format!("{url}&proxy=http://me:hush@proxy:3128"), &[]);
    did.failed(
        64,
        "--store: neither the URL of a store nor that of its proxy carries a password: put it into HTTPS_PROXY or \
         HTTP_PROXY",
    );
}

#[test]
fn a_foreign_object_in_place_of_a_record_is_never_overwritten() {
    let Some((server, url)) = minio("foreign") else { return };
    server.administer("PUT", "/foreign/locks/x.record", &[], "hello");
    server.administer("PUT", "/foreign/locks/readme.txt", &[], "hello");
    refused(&run(server, &url, &[]), 65, &["the bytes are not a Tenure record"]);
    let other = tenure(server, &url, &[], &["run", "y", "--", "echo", "hi"]);
    assert_eq!(other.code, 0, "the others are not in its way: {other:?}");
    refused(&run(server, &url, &[]), 65, &["find out which program wrote them, or use another key"]);
}

#[test]
fn an_invalid_prefix_is_reported_and_any_script_is_accepted() {
    let Some((server, _)) = minio("prefixes") else { return };
    let at =
        |prefix: &str| run(server, &format!("s3://prefixes/{prefix}?endpoint={}", server.endpoint()), &[]);
    for prefix in ["..", "a/../b", "%2e%2e", "a//b"] {
        let did = at(prefix);
        assert!(did.code == 64 && did.err.contains("is not a prefix: write it like prod/locks"), "{did:?}");
    }
    let did = at(&"x".repeat(10_000));
    did.failed(64, "--store: a prefix has at most 200 bytes, and this one has 10000");
    for prefix in ["schlösser", "schl%C3%B6sser/%E9%94%81", "%20"] {
        assert_eq!(at(prefix).code, 0, "{prefix}");
    }
}

/// Ceph, for example, matches ETags only without their quotes.
#[test]
fn a_server_that_wants_etags_in_another_form_is_refused_with_the_required_url() {
    let Some((server, direct)) = minio("form") else { return };
    assert_eq!(run(server, &direct, &[]).code, 0, "there is a record now");
    let proxy = FaultyProxy::start(server.address());
    let changed = ErrorAnswer::new(412, "PreconditionFailed");
    proxy.install(Rule::new(Fault::AnswerInstead(changed)).method("PUT").path("x.record"));
    let url = format!("s3://form/locks?endpoint={}", proxy.endpoint());
    refused(&run(server, &url, &[]), 77, &["refuses to replace the version", "write etags=bare in the URL"]);
}

/// The command on a bucket of a server that accepts connections and answers nothing.
fn silent(home: &Home, listener: &TcpListener, args: &[&str]) -> Command {
    let url = format!("s3://silent/locks?endpoint=http://{}", listener.local_addr().unwrap());
    let mut command = home.command(&["--store", &url]);
    command.args(args).env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command
}

/// Result of a command, which must take about this long.
#[track_caller]
fn did_after(limit: Duration, command: &mut Command) -> Did {
    let began = BootClock::new().now();
    let did = did(command);
    let took = BootClock::new().now().since(began);
    assert!(limit <= took && took < limit + SOON, "{took:?}: {did:?}");
    did
}

/// Sends TERM to a command once it has sent a request, and asserts that it ends soon with the code of that signal.
#[track_caller]
fn terminate<T>(command: &mut Command, wait_for_request: impl FnOnce() -> T) {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _connection = wait_for_request();
    let began = BootClock::new().now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let code = child.wait_with_output().unwrap().status.code();
    let took = BootClock::new().now().since(began);
    assert!(code == Some(143) && took < SOON, "{code:?} after {took:?}: {command:?}");
}

#[test]
fn a_signal_ends_a_command_while_it_connects() {
    let (home, listener) = (Home::new("silent"), TcpListener::bind("127.0.0.1:0").unwrap());
    let commands: [&[&str]; 5] = [
        &["run", "x", "--", "true"],
        &["acquire", "x"],
        &["steal", "x", "--reason", "test"],
        &["steal", "x", "--reason", "test", "--", "true"],
        &["probe"],
    ];
    for args in commands {
        terminate(&mut silent(&home, &listener, args), || listener.accept().unwrap());
    }
}

#[test]
fn the_time_to_connect_is_part_of_the_wait() {
    let (home, listener) = (Home::new("silent"), TcpListener::bind("127.0.0.1:0").unwrap());
    let commands: [&[&str]; 3] = [
        &["run", "x", "--wait", "1s", "--", "true"],
        &["acquire", "x", "--wait", "1s"],
        &["steal", "x", "--reason", "test", "--wait", "1s"],
    ];
    for args in commands {
        let did = did_after(Duration::from_secs(1), &mut silent(&home, &listener, args));
        let parts =
            ["connecting to s3://silent/locks?", "took longer than --wait 1s: check that the store runs"];
        refused(&did, 69, &parts);
    }
}

/// The verdict is cached, so connecting sends nothing.
#[test]
fn signals_and_the_wait_count_when_a_server_that_passed_the_check_stops_answering() {
    let Some((server, direct)) = minio("dumb") else { return };
    let (home, proxy) = (Home::new("dumb"), FaultyProxy::start(server.address()));
    let url = direct.replace(&server.endpoint(), &proxy.endpoint());
    let command = |args: &[&str]| {
        let mut command = home.command(&["--store", &url]);
        command.args(args).envs(server.environment()).env("PATH", "/usr/bin:/bin");
        command
    };
    let holder = did(&mut command(&["acquire", "x", "--ttl", "60s"]));
    assert_eq!(holder.code, 0, "{holder:?}");
    proxy.install(Rule::new(Fault::SwallowRequest(Duration::from_secs(60))));
    let commands: [&[&str]; 3] = [
        &["run", "x", "--ttl", "60s", "--wait", "1s", "--", "true"],
        &["acquire", "x", "--wait", "1s"],
        &["steal", "x", "--reason", "test", "--wait", "1s"],
    ];
    for args in commands {
        let did = did_after(Duration::from_secs(1), &mut command(args));
        assert_eq!(did.code, 69, "{did:?}");
    }
    for args in [&["run", "x", "--", "true"][..], &["acquire", "x"], &["steal", "x", "--reason", "test"]] {
        terminate(&mut command(args), || sleep_ms(500));
    }
}

#[test]
fn the_cause_is_reported_while_a_command_waits_for_a_store_and_when_the_wait_is_over() {
    let Some((server, direct)) = minio("busy") else { return };
    let (home, proxy) = (Home::new("busy"), FaultyProxy::start(server.address()));
    let url = direct.replace(&server.endpoint(), &proxy.endpoint());
    let command = |args: &[&str]| {
        let mut command = home.command(&["--store", &url]);
        command.args(args).envs(server.environment()).env("PATH", "/usr/bin:/bin");
        did(&mut command)
    };
    assert_eq!(command(&["run", "x", "--", "true"]).code, 0);
    let rule = proxy.install(Rule::new(Fault::AnswerInstead(ErrorAnswer::SLOW_DOWN)));
    let throttled = command(&["run", "x", "--wait", "6s", "--", "true"]);
    let still = "tenure: still waiting for lease x on s3://busy/locks?";
    assert!(throttled.err.lines().next().is_some_and(|line| line.starts_with(still)), "{throttled:?}");
    assert_eq!(throttled.err.matches("the store asks for fewer calls").count(), 2, "{throttled:?}");
    rule.remove();
    // The second attempt is still without an answer when the wait is over.
    proxy.install(Rule::new(Fault::SwallowRequest(Duration::from_secs(60))));
    let silent = command(&["run", "x", "--wait", "2s", "--", "true"]);
    refused(&silent, 69, &["could not be granted to", "(no answer within the request timeout)"]);
}

/// Far longer than a command needs to exit, and far shorter than the time limits of the calls on a store.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn a_kv_command_whose_answer_is_lost_after_the_server_applied_the_write_reports_what_happened() {
    let Some((server, _)) = minio("keys") else { return };
    let proxy = FaultyProxy::start(server.address());
    let (home, url) = (Home::new("lost-keys"), format!("s3://keys/locks?endpoint={}", proxy.endpoint()));
    let kv = |args: &[&str]| {
        let mut command = home.command(&["--store", &url, "kv"]);
        did(command.args(args).arg("--json").envs(server.environment()))
    };
    // Loses the answer to this write of the key `k`, once, and expects this result.
    let lost = |nth: u64, args: &[&str], result: &str| {
        let rule = Rule::new(Fault::CutAfter).method("PUT").path("k.record").nth(nth).times(1);
        let rule = proxy.install(rule);
        let did = kv(args);
        assert_eq!(rule.counts().applied, 1, "{args:?}: {did:?}");
        rule.remove();
        assert_eq!(did.code, 0, "{args:?}: {did:?}");
        let answer = did.json();
        assert_eq!(answer["result"], result, "{args:?}: {did:?}");
        answer
    };
    // The first write plants the key, the second creates the entry.
    let created = lost(2, &["create", "k", "one"], "created");
    let updated = lost(1, &["cas", "k", &created["revision"].to_string(), "two", "--ttl", "60s"], "updated");
    assert!(updated["revision"].as_u64() > created["revision"].as_u64());
    let renewed = lost(1, &["renew", "k"], "renewed");
    assert_eq!(renewed["revision"], updated["revision"]);
    let found = kv(&["get", "k"]).json();
    assert_eq!((&found["value"], &found["revision"]), (&"two".into(), &updated["revision"]));
    assert_eq!(kv(&["cas", "k", &created["revision"].to_string(), "three"]).code, 75);
    lost(1, &["release", "k"], "released");
    assert_eq!(kv(&["get", "k"]).code, 1);
    let again = lost(1, &["create", "k", "four"], "created");
    assert!(again["revision"].as_u64() > updated["revision"].as_u64());
}
