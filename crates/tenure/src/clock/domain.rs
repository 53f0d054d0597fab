use std::path::Path;

use super::boot_id;

/// Identity of a boot-time clock: the processes of one boot of one kernel in one time namespace share it.
///
/// A time namespace shifts the clock and keeps the boot id, so both are compared. A different boot id proves nothing
/// (systemd-nspawn mounts another file over the kernel's); readings are then not compared. The kernel reuses the
/// numbers of time namespaces, and the next one may have another offset, so the offset is compared too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    boot: String,
    time_namespace: String,
}

impl Domain {
    /// The domain of this process; `None` if `/proc` does not show it.
    pub fn here() -> Option<Self> {
        let boot = boot_id()?;
        let time_namespace = match std::fs::read_link("/proc/self/ns/time") {
            Ok(link) => format!("{}+{}", link.to_str()?, shift(&link)?),
            // A kernel with namespaces, but without time namespaces.
            Err(_) if Path::new("/proc/self/ns/mnt").is_symlink() => "none".to_owned(),
            Err(_) => return None,
        };
        Self::parse(&format!("{boot},{time_namespace}"))
    }

    /// The written form, a single word.
    pub fn parse(word: &str) -> Option<Self> {
        let (boot, time_namespace) = word.split_once(',')?;
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = word.len() <= Self::MAX_BYTES && plain(boot) && plain(time_namespace);
        fits.then(|| Self { boot: boot.to_owned(), time_namespace: time_namespace.to_owned() })
    }

    /// The longest written form.
    const MAX_BYTES: usize = 128;
}

/// Offset of this namespace's boot-time clock, in written form. The kernel shows the offset of the namespace for
/// children: `None` if that is another one.
fn shift(namespace: &Path) -> Option<String> {
    if std::fs::read_link("/proc/self/ns/time_for_children").ok()? != namespace {
        return None;
    }
    let shifts = std::fs::read_to_string("/proc/self/timens_offsets").ok()?;
    let mut boottime = shifts.lines().find_map(|line| line.strip_prefix("boottime"))?.split_whitespace();
    Some(format!("{}.{}", boottime.next()?, boottime.next()?))
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.boot, self.time_namespace)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::process::Command;

    use super::*;

    #[test]
    fn this_process_knows_its_domain_and_the_written_form_parses() {
        let here = Domain::here().expect("there is a /proc here");
        assert_eq!(Domain::here().as_ref(), Some(&here));
        println!("domain {here}");
        assert_eq!(Domain::parse(&here.to_string()), Some(here));
    }

    /// A time namespace ends with its last process, and the kernel reuses its number.
    #[test]
    fn a_namespace_with_a_reused_number_and_another_clock_is_another_domain() {
        let in_namespace = |shift: &str| {
            let namespace = ["--user", "--map-root-user", "--time", "--boottime", shift, "--fork", "--"];
            let print = [std::env::current_exe().unwrap().into_os_string(), "--exact".into(), PRINTS.into()];
            Command::new("unshare").args(namespace).args(print).arg("--nocapture").output()
        };
        let mut seen: HashMap<String, String> = HashMap::new();
        for shift in 1..=40 {
            let output = in_namespace(&(shift * 1_000).to_string()).unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let Some(domain) = text.lines().find_map(|line| line.strip_prefix("domain ")) else {
                return tenure_testkit::skipped("no time namespaces here");
            };
            assert!(domain.ends_with(&format!("+{}.0", shift * 1_000)), "{domain}");
            let number = domain.split('+').next().unwrap().to_owned();
            if seen.insert(number, domain.to_owned()).is_some() {
                return;
            }
        }
        eprintln!("this kernel gave no number twice");
    }

    const PRINTS: &str = "clock::domain::tests::this_process_knows_its_domain_and_the_written_form_parses";

    #[test]
    fn half_a_domain_or_an_invalid_one_is_refused() {
        for word in ["", "boot", "boot,", ",namespace", "a b,c", "a,b\n", &format!("a,{}", "b".repeat(200))] {
            assert_eq!(Domain::parse(word), None, "{word:?}");
        }
    }
}
