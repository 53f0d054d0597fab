use std::path::Path;

/// Who reads the same boot-time clock: the processes of one boot of one kernel in one time namespace.
///
/// A time namespace shifts the clock and keeps the boot id, so both are compared. A different boot id proves nothing
/// (systemd-nspawn puts another one over the kernel's): then readings are simply not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    boot: String,
    time_namespace: String,
}

impl Domain {
    /// Where this process is; `None` where `/proc` does not say.
    pub fn here() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let time_namespace = match std::fs::read_link("/proc/self/ns/time") {
            Ok(link) => link.to_str()?.to_owned(),
            // A kernel that has namespaces, and none for time.
            Err(_) if Path::new("/proc/self/ns/mnt").is_symlink() => "none".to_owned(),
            Err(_) => return None,
        };
        Self::parse(&format!("{},{time_namespace}", boot.trim()))
    }

    /// The written form, a single word.
    pub fn parse(word: &str) -> Option<Self> {
        let (boot, time_namespace) = word.split_once(',')?;
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = word.len() <= Self::MAX_BYTES && plain(boot) && plain(time_namespace);
        fits.then(|| Self { boot: boot.to_owned(), time_namespace: time_namespace.to_owned() })
    }

    /// The longest written form.
    pub const MAX_BYTES: usize = 128;
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.boot, self.time_namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_knows_where_it_is_and_the_written_form_comes_back() {
        let here = Domain::here().expect("there is a /proc here");
        assert_eq!(Domain::here().as_ref(), Some(&here));
        assert_eq!(Domain::parse(&here.to_string()), Some(here));
    }

    #[test]
    fn half_a_domain_or_one_that_is_no_word_is_none() {
        for word in ["", "boot", "boot,", ",namespace", "a b,c", "a,b\n", &format!("a,{}", "b".repeat(200))] {
            assert_eq!(Domain::parse(word), None, "{word:?}");
        }
    }
}
