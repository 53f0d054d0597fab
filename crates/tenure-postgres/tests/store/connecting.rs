//! Passwords, files, sockets and TLS.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tenure_postgres::{Environment, Postgres, PostgresBuilder};
use tenure_store::{Store, StoreError};
use tenure_testkit::{Authority, PostgresKind, PostgresServer, PostgresSetup, key};

use crate::database::{Database, open};
use crate::refusal;

#[tokio::test]
async fn a_password_is_found_in_the_usual_places_and_never_shown() {
    let authority = Authority::new();
    let setup = PostgresSetup::new().password("hush").encrypted(authority.certify(&["localhost"]));
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    let port = server.address().port();
    let home = std::env::temp_dir().join(format!("tenure-postgres-{}", std::process::id()));
    std::fs::create_dir_all(home.join(".postgresql")).unwrap();
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let root = write("ca.pem", &authority.pem());
    let other_root = write("other.pem", &Authority::new().pem());
    let builder = Postgres::builder().host_at("localhost", port).user("postgres").database("postgres");
    let checked = builder.clone().parameter("sslmode", "verify-full").parameter("sslrootcert", &root);
    let variables = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<Environment>();
    let get = async |builder: &PostgresBuilder, variables: &[(&str, &str)]| {
        let store = builder.open_in(&variables.iter().copied().collect()).unwrap();
        let answer = store.get(&key("k")).await;
        assert!(!format!("{store} {store:?} {answer:?} {:?}", store.identity()).contains("hush"));
        answer
    };

    // The password.
    get(&checked, &[("PGPASSWORD", "hush")]).await.unwrap();
    get(&checked.clone().password("hush"), &[]).await.unwrap();
    let sentence = refusal(get(&checked, &[]).await);
    assert!(
        sentence.contains("asks for the password of the role \"postgres\", and none was found"),
        "{sentence}"
    );
    let sentence = refusal(get(&checked, &[("PGPASSWORD", "no-hush")]).await);
    assert!(sentence.contains("the password of the role \"postgres\" is wrong"), "{sentence}");
    let file = write("passwords", &format!("localhost:{port}:*:postgres:hush\n"));
    get(&checked, &[("PGPASSFILE", &file)]).await.unwrap();
    write(".pgpass", "*:*:*:*:hush\n");
    get(&checked, &[("HOME", home.to_str().unwrap())]).await.unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let sentence = refusal(get(&checked, &[("PGPASSFILE", &file)]).await);
    assert!(sentence.contains("asks for the password") && sentence.contains("run chmod 600"), "{sentence}");
    let text =
        format!("[billing]\nhost=localhost\nport={port}\nuser=postgres\ndbname=postgres\npassword=hush\n");
    let services = write("services", &text);
    let service = Postgres::builder().service("billing").parameter("sslrootcert", &root);
    get(&service, &[("PGSERVICEFILE", &services)]).await.unwrap();
    get(&Postgres::builder(), &[("PGSERVICEFILE", &services), ("PGSERVICE", "billing")]).await.unwrap();
    let error = Postgres::builder().service("other").open_in(&variables(&[("PGSERVICEFILE", &services)]));
    assert!(error.unwrap_err().to_string().contains("there is no service \"other\""));

    // TLS.
    let with_password = builder.clone().password("hush");
    let mode = |mode: &str| with_password.clone().parameter("sslmode", mode);
    get(&with_password, &[]).await.unwrap();
    get(&mode("require"), &[]).await.unwrap();
    let sentence = refusal(get(&mode("disable"), &[]).await);
    assert!(sentence.contains("may not connect"), "{sentence}");
    let sentence = refusal(get(&mode("verify-full").parameter("sslrootcert", &other_root), &[]).await);
    assert!(sentence.contains("name the file of the authority with sslrootcert"), "{sentence}");
    let by_address = Postgres::builder().host_at("127.0.0.1", port).user("postgres").database("postgres");
    let by_address = by_address.password("hush").parameter("sslrootcert", &root);
    let sentence = refusal(get(&by_address.clone().parameter("sslmode", "verify-full"), &[]).await);
    assert!(sentence.contains("name the server in the URL as its certificate does"), "{sentence}");
    assert!(!sentence.contains("verify-ca"), "no advice accepts other servers: {sentence}");
    get(&by_address.parameter("sslmode", "verify-ca"), &[]).await.unwrap();
    std::fs::remove_dir_all(&home).unwrap();
}

/// A home directory on a network may be silent. A pipe without a writer is as silent.
#[tokio::test]
async fn a_silent_password_file_costs_one_call_and_stops_no_other_work_of_its_thread() {
    let Some(database) = Database::on_shared("silent_file") else { return };
    let pipe = std::env::temp_dir().join(format!("tenure-pgpass-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg("-m600").arg(&pipe).status().unwrap();
    assert!(made.success());
    let silent = database.builder().parameter("passfile", pipe.to_str().unwrap());
    let silent = open(&silent.parameter("connect_timeout", "1"));
    let mut turns = 0;
    let others = async {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            turns += 1;
        }
    };
    let k = key("k");
    let sentence = tokio::select! {
        answer = silent.get(&k) => refusal(answer),
        () = others => unreachable!(),
    };
    assert!(sentence.contains("did not answer"), "{sentence}");
    assert!(turns > 10, "{turns}");
    std::fs::remove_file(&pipe).unwrap();
}

/// As with `psql`, which only warns.
#[tokio::test]
async fn a_password_file_that_others_may_read_is_not_used_and_stops_no_store_without_a_password() {
    let Some(database) = Database::on_shared("trusting") else { return };
    let file = std::env::temp_dir().join(format!("tenure-passwords-{}", std::process::id()));
    std::fs::write(&file, "*:*:*:*:hush\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let variables = [("PGPASSFILE", file.to_str().unwrap())].into_iter().collect();
    let answer = database.builder().open_in(&variables).unwrap().get(&key("k")).await;
    std::fs::remove_file(&file).unwrap();
    answer.unwrap();
}

#[test]
fn a_builder_refuses_parameters_that_check_less_than_they_say() {
    let remote = || Postgres::builder().host("db.example.org").user("me").database("app");
    let local = || Postgres::builder().host("localhost").user("me").database("app");
    let mode = |mode: &str| remote().parameter("sslmode", mode);
    let system = |mode_of: PostgresBuilder| mode_of.parameter("sslrootcert", "system");
    for (builder, part) in [
        (system(mode("disable")), "sslrootcert=system needs sslmode=verify-full"),
        (system(mode("prefer")), "sslrootcert=system needs sslmode=verify-full"),
        (system(mode("require")), "sslrootcert=system needs sslmode=verify-full"),
        (system(mode("verify-ca")), "sslrootcert=system needs sslmode=verify-full"),
        (mode("verify-ca"), "sslmode=verify-ca needs the file of a private authority"),
        (mode("require").parameter("sslcert", "/c.pem"), "/c.pem of the client has no key"),
        (mode("require").parameter("sslkey", "/k.pem"), "/k.pem of the client has no certificate"),
        (mode("prefer").parameter("sslnegotiation", "direct"), "direct needs sslmode=require or stricter"),
        (local().parameter("sslnegotiation", "direct"), "direct needs sslmode=require or stricter"),
        (local().host("a,b"), "\"a,b\" is not one host"),
    ] {
        let error = builder.open_in(&Environment::default()).unwrap_err();
        assert!(error.to_string().contains(part), "{builder}: {error}");
    }
    for variable in ["PGSSLCRL", "PGSSLCRLDIR", "PGREQUIREAUTH", "PGREQUIREPEER"] {
        let error = local().open_in(&[(variable, "x")].into_iter().collect()).unwrap_err();
        assert!(error.to_string().contains(variable), "{error}");
    }
    // A socket is not encrypted, whatever the parameters say.
    let socket = Postgres::builder().host("/run/postgresql").user("me").database("app");
    open(&system(socket).parameter("sslnegotiation", "direct"));
}

#[tokio::test]
async fn a_client_proves_itself_with_its_certificate_and_binds_its_password_to_the_channel() {
    let authority = Authority::new();
    let setup = PostgresSetup::new().password("hush").encrypted(authority.certify(&["localhost"]));
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    let write = |path: &Path, text: &str, mode: u32| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let directory = server.socket_directory();
    let root = write(&directory.join("ca.pem"), &authority.pem(), 0o644);
    let client = authority.certify(&["client"]);
    let certificate = write(&directory.join("client.crt"), &client.chain, 0o644);
    let secret = directory.join("client.key");
    let secret_name = write(&secret, &client.key, 0o600);
    // With the authority on the server, a session shows the certificate of its client.
    server.sql(&format!("ALTER SYSTEM SET ssl_ca_file = '{root}'"));
    let rules = server.data_directory().join("pg_hba.conf");
    let password = "hostssl all all 127.0.0.1/32 scram-sha-256";
    let trusted = "hostssl all trusted 127.0.0.1/32 trust\nlocal all all trust\n";
    std::fs::write(&rules, format!("{trusted}{password} clientcert=verify-ca\n")).unwrap();
    server.sql("CREATE ROLE trusted LOGIN");
    server.sql("SELECT pg_reload_conf()");
    let builder = Postgres::builder()
        .host_at("localhost", server.address().port())
        .user("postgres")
        .database("postgres")
        .password("hush")
        .parameter("sslmode", "verify-full")
        .parameter("sslrootcert", &root);
    let mut anonymous = open(&builder).get(&key("k")).await;
    // The reload takes a moment.
    for _ in 0..50 {
        if anonymous.is_err() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        anonymous = open(&builder).get(&key("k")).await;
    }
    let sentence = refusal(anonymous);
    assert!(sentence.contains("valid client certificate"), "{sentence}");

    let certified = builder.clone().parameter("sslcert", &certificate).parameter("sslkey", &secret_name);
    open(&certified).get(&key("k")).await.unwrap();
    for (mode, is_allowed) in [(0o640, true), (0o604, false), (0o660, false)] {
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
        let opened = certified.open_in(&Environment::default());
        if std::fs::metadata(&secret).unwrap().uid() == 0 && is_allowed {
            opened.unwrap().get(&key("k")).await.unwrap();
        } else {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("other users have access to the key"), "{mode:o}: {error}");
        }
    }
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();

    // SCRAM over TLS can be bound to the channel. A server that asks for no password binds nothing.
    let bound = certified.parameter("channel_binding", "require");
    open(&bound).get(&key("k")).await.unwrap();
    let sentence = refusal(open(&bound.clone().user("trusted")).get(&key("k")).await);
    assert!(sentence.contains("channel binding"), "{sentence}");

    // Servers before version 17 expect a request before they encrypt, and hang up.
    refusal(open(&bound.parameter("sslnegotiation", "direct")).get(&key("k")).await);
}

#[tokio::test]
async fn a_newer_server_encrypts_at_once() {
    let authority = Authority::new();
    let setup = PostgresSetup::new().kind(PostgresKind::Newest).encrypted(authority.certify(&["localhost"]));
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    let root = server.socket_directory().join("ca.pem");
    std::fs::write(&root, authority.pem()).unwrap();
    let direct = Postgres::builder()
        .host_at("localhost", server.address().port())
        .user("postgres")
        .parameter("sslmode", "verify-full")
        .parameter("sslrootcert", root.to_str().unwrap())
        .parameter("sslnegotiation", "direct");
    open(&direct).get(&key("k")).await.unwrap();
}

/// `psql` does the same. Otherwise a wish for a check would check nothing.
#[tokio::test]
async fn the_authorities_of_the_machine_check_also_a_server_on_this_machine() {
    let setup = PostgresSetup::new().encrypted(Authority::new().certify(&["localhost"]));
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    let builder = Postgres::builder().host_at("localhost", server.address().port()).user("postgres");
    match builder.parameter("sslrootcert", "system").open_in(&Environment::default()) {
        Ok(store) => {
            let sentence = refusal(store.get(&key("k")).await);
            assert!(sentence.contains("name the file of the authority"), "{sentence}");
        }
        Err(error) => assert!(error.to_string().contains("trusts no authority"), "{error}"),
    }
}

#[tokio::test]
async fn a_socket_is_used_without_tls_and_a_wrong_place_is_reported() {
    let Some(database) = Database::on_shared("places") else { return };
    let directory = database.server().socket_directory();
    let port = database.server().address().port();
    let at =
        |directory: &Path| Postgres::builder().host_at(directory.to_str().unwrap(), port).user("postgres");
    let store = open(&at(&directory).database("places").parameter("sslmode", "require"));
    store.get(&key("k")).await.unwrap();
    let expected = format!("postgres:///places?host={}&port={port}", directory.display());
    assert_eq!(store.to_string(), expected);

    let sentence = refusal(open(&at(&directory).database("nowhere")).get(&key("k")).await);
    assert!(sentence.contains("there is no database \"nowhere\""), "{sentence}");
    let sentence = refusal(open(&at(&directory).user("nobody-here").database("places")).get(&key("k")).await);
    assert!(sentence.contains("the role \"nobody-here\" may not connect"), "{sentence}");
    let sentence = refusal(open(&at(Path::new("/nowhere")).database("places")).get(&key("k")).await);
    assert!(
        sentence.contains("/nowhere/.s.PGSQL") && sentence.contains("could not be reached"),
        "{sentence}"
    );
}

#[tokio::test]
async fn a_server_without_a_free_connection_asks_for_a_pause() {
    let Some(database) = Database::on_shared("crowded") else { return };
    database.sql("CREATE ROLE one LOGIN CONNECTION LIMIT 1");
    let holder = open(&database.builder().user("one"));
    holder.get(&key("k")).await.unwrap();
    let answer = open(&database.builder().user("one")).get(&key("k")).await;
    let Err(StoreError::Throttled(throttled)) = answer else { panic!("{answer:?}") };
    assert!(throttled.cause.unwrap().contains("the server has no connection left"));
}
