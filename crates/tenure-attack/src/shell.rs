use std::process::{Command, Stdio};

/// Runs a shell script that must succeed, and returns its output.
pub(crate) fn shell(script: &str) -> Result<String, String> {
    let ran = Command::new("sh").args(["-ec", script]).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("sh: {error}"))?;
    if ran.status.success() {
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    } else {
        Err(format!("{script:?} failed: {}", String::from_utf8_lossy(&ran.stderr).trim()))
    }
}

/// True if a program of this name is installed.
pub(crate) fn has(program: &str) -> bool {
    shell(&format!("command -v {program}")).is_ok()
}
