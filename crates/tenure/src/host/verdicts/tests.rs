use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::clock::ManualClock;
use crate::host::disk::page::Page;

const PLACE: &str = "s3://bucket/locks";

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn domain() -> Domain {
    Domain::parse("boot,time:[1]+0.0").unwrap()
}

fn page(verdicts: &[Verdict], now: u64) -> VerdictPage {
    let mut page = VerdictPage::default();
    verdicts.iter().for_each(|verdict| page.add(verdict.clone(), at(now)));
    page
}

#[test]
fn a_verdict_is_valid_for_a_day_and_for_its_place_alone() {
    let day = 24 * 60 * 60;
    let page = page(&[Verdict::sound(PLACE, at(7))], 7);
    assert!(page.is_sound(PLACE, at(7)) && page.is_sound(PLACE, at(6 + day)));
    assert!(!page.is_sound(PLACE, at(7 + day)) && !page.is_sound("s3://bucket/lock", at(7)));
    assert!(!page.is_sound(PLACE, at(6)), "no process has checked it yet");
}

#[test]
fn a_check_that_began_before_a_breach_does_not_count_after_it() {
    let (sound, broken) = (|seconds| Verdict::sound(PLACE, at(seconds)), Verdict::broken(PLACE, at(5)));
    assert!(!page(&[sound(4), broken.clone()], 9).is_sound(PLACE, at(9)));
    assert!(
        !page(&[broken.clone(), sound(4)], 9).is_sound(PLACE, at(9)),
        "the check began before the breach"
    );
    assert!(!page(&[broken.clone(), sound(5)], 9).is_sound(PLACE, at(9)));
    assert!(!page(&[sound(5), broken.clone()], 9).is_sound(PLACE, at(9)));
    assert!(page(&[broken, sound(6)], 9).is_sound(PLACE, at(9)), "it was checked anew");
}

#[test]
fn a_page_that_is_damaged_cut_or_of_another_boot_is_not_trusted() {
    let page = page(&[Verdict::sound(PLACE, at(7)), Verdict::broken("b", at(8))], 9);
    let text = page.encode(&domain());
    let decoded = |bytes: &[u8], domain: &Domain| VerdictPage::decode(bytes, domain, at(9));
    assert!(decoded(text.as_bytes(), &domain()).unwrap().is_sound(PLACE, at(9)));
    for length in 0..text.len() {
        assert!(decoded(&text.as_bytes()[..length], &domain()).is_none(), "cut at {length}");
    }
    for place in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[place] ^= 1;
        assert!(decoded(&bytes, &domain()).is_none(), "damaged at {place}");
    }
    for other in ["another,time:[1]+0.0", "boot,time:[2]+0.0", "boot,time:[1]+86400.0"] {
        assert!(decoded(text.as_bytes(), &Domain::parse(other).unwrap()).is_none());
    }
    assert!(
        !VerdictPage::decode(text.as_bytes(), &domain(), at(6)).unwrap().is_sound(PLACE, at(9)),
        "it is later than now"
    );
}

#[test]
fn the_number_of_verdicts_is_bounded_and_the_oldest_goes_first() {
    let mut page = VerdictPage::default();
    for number in 0..100 {
        page.add(Verdict::sound(&format!("s3://bucket/{number}"), at(number)), at(200));
    }
    assert!(page.is_sound("s3://bucket/99", at(200)) && !page.is_sound("s3://bucket/0", at(200)));
    page.add(Verdict::sound(&"x".repeat(3_000), at(150)), at(200));
    assert!(!page.is_sound(&"x".repeat(3_000), at(200)));
    assert!(page.encode(&domain()).len() < crate::host::disk::per_boot_files::BYTES_MAX);
}

// ── on a disk ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// Verdicts in a directory; deleted when dropped.
struct Kept(Verdicts);

impl Kept {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tenure-verdicts-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(Verdicts::in_directory(path))
    }

    fn files(&self) -> Vec<PathBuf> {
        let Ok(found) = std::fs::read_dir(&self.0.directory) else { return vec![] };
        let paths = found.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0.directory);
    }
}

#[test]
fn a_verdict_is_kept_for_its_user_alone_until_it_is_forgotten() {
    use std::os::unix::fs::PermissionsExt;

    let (kept, clock) = (Kept::new(), BootClock::new());
    let here = clock.domain().expect("there is a /proc here");
    let is_sound = |place| kept.0.is_sound(place, &here, &clock);
    assert!(!is_sound(PLACE));
    kept.0.forget(PLACE).unwrap();
    assert!(!kept.0.directory.exists(), "nothing is made before there is something to keep");
    let began = clock.now();
    kept.0.write_sound(PLACE, began, &here, &clock);
    kept.0.write_sound("other", began, &here, &clock);
    assert!(is_sound(PLACE) && is_sound("other"));
    let file = kept.files().pop().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    kept.0.forget(PLACE).unwrap();
    assert!(!is_sound(PLACE) && is_sound("other"));
    kept.0.write_sound(PLACE, began, &here, &clock);
    assert!(!is_sound(PLACE), "that check began before");
    kept.0.write_sound(PLACE, clock.now(), &here, &clock);
    assert!(is_sound(PLACE));
}

#[test]
fn a_process_on_another_clock_checks_for_itself_and_forgets_for_all() {
    let (kept, clock) = (Kept::new(), ManualClock::new());
    let (here, there) = (domain(), Domain::parse("boot,time:[2]+0.0").unwrap());
    kept.0.write_sound(PLACE, clock.now(), &here, &clock);
    assert!(kept.0.is_sound(PLACE, &here, &clock) && !kept.0.is_sound(PLACE, &there, &clock));
    kept.0.write_broken(PLACE, Some(&there), &clock).unwrap();
    assert!(!kept.0.is_sound(PLACE, &here, &clock));
}

#[test]
fn a_file_that_another_user_may_have_written_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;

    type Spoil = fn(&Path);
    let spoilers: [(&str, Spoil); 4] = [
        ("writable by others", |path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("one with a second name", |path| std::fs::hard_link(path, path.with_extension("x")).unwrap()),
        ("a link", |path| {
            std::fs::rename(path, path.with_extension("x")).unwrap();
            std::os::unix::fs::symlink(path.with_extension("x"), path).unwrap();
        }),
        ("nonsense", |path| std::fs::write(path, "{}\n{}\n").unwrap()),
    ];
    for (what, spoil) in spoilers {
        let (kept, clock) = (Kept::new(), ManualClock::new());
        kept.0.write_sound(PLACE, clock.now(), &domain(), &clock);
        assert!(kept.0.is_sound(PLACE, &domain(), &clock));
        spoil(&kept.files()[0]);
        assert!(!kept.0.is_sound(PLACE, &domain(), &clock), "{what}");
        kept.0.write_broken(PLACE, Some(&domain()), &clock).unwrap();
        assert!(!kept.0.is_sound(PLACE, &domain(), &clock), "{what}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_removed_and_a_failed_removal_is_an_error() {
    let (kept, clock) = (Kept::new(), ManualClock::new());
    kept.0.write_sound(PLACE, clock.now(), &domain(), &clock);
    // A directory in the place of the new file: Tenure can neither write nor remove the file.
    let new = kept.files()[0].with_extension("new");
    std::fs::create_dir_all(new.join("in the way")).unwrap();
    kept.0.write_broken(PLACE, Some(&domain()), &clock).unwrap();
    assert!(kept.files().is_empty() && !kept.0.is_sound(PLACE, &domain(), &clock));

    std::fs::write(kept.0.directory.with_extension("file"), "").unwrap();
    let error = Verdicts::in_directory(kept.0.directory.with_extension("file")).forget(PLACE).unwrap_err();
    std::fs::remove_file(kept.0.directory.with_extension("file")).unwrap();
    assert!(
        error.to_string().contains(PLACE) && error.to_string().contains("Remove that directory"),
        "{error}"
    );
}
