//! Handle files that another user has prepared.

use crate::arena::{Arena, Who};
use crate::attack::Attack;
use crate::shell::shell;
use crate::verdict::{AttackOutcome, broken, held};

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "handles/release --file follows another user's link in a sticky directory",
            NO_LINKS,
            |arena| {
                taken(arena, "release", "ln -s $PWD/root/live sticky/lease; chown -h $USER_ sticky/lease")
            },
        ),
        Attack::new(
            "handles/renew --file follows another user's link in a sticky directory",
            NO_LINKS,
            |arena| taken(arena, "renew", "ln -s $PWD/root/live sticky/lease; chown -h $USER_ sticky/lease"),
        ),
        Attack::new("handles/release --file reads a file of another user", NO_LINKS, |arena| {
            taken(arena, "release", "cp root/live sticky/lease; chown $USER_ sticky/lease")
        }),
        Attack::new("handles/release --file in a directory of another user", NO_LINKS, |arena| {
            taken(
                arena,
                "release",
                "rmdir sticky; mkdir sticky; cp root/live sticky/lease; chown $USER_ sticky",
            )
        }),
        Attack::new("handles/release --file through another user's link to a directory", NO_LINKS, |arena| {
            taken(
                arena,
                "release",
                "cp root/live root/lease; mkdir -m 1777 x; ln -s ../root x/sticky; chown -h $USER_ x/sticky; rmdir sticky; ln -s x/sticky sticky; chown -h $USER_ sticky",
            )
        }),
        Attack::new("handles/acquire --file writes through another user's link", NO_LINKS, written),
    ]
}

/// Root has a live lease, and the script prepares a path to its handle. The command must leave the lease alone.
fn taken(arena: &Arena, command: &str, script: &str) -> AttackOutcome {
    let live = arena.home(Who::Root).join("live").display().to_string();
    let ran = arena.ran(arena.tenure(Who::Root, &["acquire", "victim", "--ttl", "1h", "--file", &live]))?;
    if ran.code != 0 {
        return broken(format!("acquire exited with {}: {}", ran.code, ran.err));
    }
    let user = Who::User.number();
    shell(&format!("cd {}; USER_={user}; mkdir -m 1777 sticky; {script}", arena.directory.display()))?;
    let file = arena.path("sticky/lease").display().to_string();
    let ran = arena.ran(arena.tenure(Who::Root, &[command, "--file", &file]))?;
    let status = arena.ran(arena.tenure(Who::Root, &["status", "victim"]))?;
    if ran.code != 0 && status.code == 0 {
        held(format!("refused with {}: {}", ran.code, ran.err))
    } else {
        broken(format!("{command} exited with {}: {}; afterwards: {}", ran.code, ran.err, status.out))
    }
}

fn written(arena: &Arena) -> AttackOutcome {
    let user = Who::User.number();
    let at = arena.directory.display();
    shell(&format!(
        "cd {at}; echo precious >victim; mkdir -m 1777 sticky; ln -s $PWD/victim sticky/lease; chown -h {user} sticky/lease"
    ))?;
    let file = arena.path("sticky/lease").display().to_string();
    let ran = arena.ran(arena.tenure(Who::Root, &["acquire", "other", "--file", &file]))?;
    let victim = std::fs::read_to_string(arena.path("victim")).unwrap_or_default();
    if victim == "precious\n" {
        held(format!("the victim's file is unchanged; exit {}: {}", ran.code, ran.err))
    } else {
        broken("the victim's file was overwritten")
    }
}

const NO_LINKS: &str = "a handle file is opened as given: links and files of other users are refused";
