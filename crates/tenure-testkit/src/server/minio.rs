//! MinIO: atomic conditions, and the status codes of AWS. The server for everyday tests.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use super::recipe::{ACCESS_KEY, REGION, Recipe, SECRET_KEY};
use crate::authority::Certificate;
use crate::home::Home;
use crate::http;
use crate::port::Port;

#[derive(Debug)]
pub(crate) struct Minio;

impl Recipe for Minio {
    fn ports(&self) -> usize {
        1
    }

    fn command(&self, program: &Path, home: &Home, ports: &[Port]) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.args(["server", "--quiet", "--address"]).arg(ports[0].address().to_string()).arg(home.data());
        // It contacts no other machine, and serves no web interface, which would need a port.
        command.args(["--config-dir"]).arg(home.path().join("config"));
        command.env("MINIO_ROOT_USER", ACCESS_KEY).env("MINIO_ROOT_PASSWORD", SECRET_KEY);
        command.env("MINIO_SITE_REGION", REGION).env("MINIO_BROWSER", "off").env("MINIO_UPDATE", "off");
        Ok(command)
    }

    /// `health/ready` succeeds before its data and its users are loaded. Once both are, an unknown user gets a refusal
    /// (403) instead of a temporary error.
    fn is_ready(&self, ports: &[Port]) -> bool {
        let status = |path| http::status(ports[0].address(), "GET", path, "").unwrap_or_default();
        status("/minio/health/cluster") == 200 && status(STRANGER) == 403
    }

    /// A directory in its data directory is a bucket, from the next read on.
    fn create_bucket(&self, home: &Home, _: &[Port], name: &str) -> io::Result<()> {
        fs::create_dir_all(home.data().join(name))
    }
}

/// Makes it serve with this certificate, and only over TLS.
pub(crate) fn encrypt(command: &mut Command, home: &Home, certificate: &Certificate) -> io::Result<()> {
    let directory = home.path().join("certificates");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("public.crt"), &certificate.chain)?;
    fs::write(directory.join("private.key"), &certificate.key)?;
    command.arg("--certs-dir").arg(directory);
    Ok(())
}

pub(crate) fn is_ready_encrypted(ports: &[Port]) -> bool {
    let status = |path| http::encrypted_status(ports[0].address(), "GET", path).unwrap_or_default();
    status("/minio/health/cluster") == 200 && status(STRANGER) == 403
}

/// A presigned URL of an unknown user.
const STRANGER: &str = "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=nobody%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
    &X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=0";
