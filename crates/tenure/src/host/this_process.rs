use std::fs;

use tenure_core::ProcessInfo;

/// This process as people know it: host, process id, user, and container. It has no command line, because arguments may
/// contain secrets: [`ProcessInfo::with_command`] adds one.
pub fn this_process() -> ProcessInfo {
    let info = ProcessInfo::default()
        .with_host(&host_name())
        .with_pid(std::process::id())
        .with_user(&user_name(rustix::process::geteuid().as_raw()));
    match container_id() {
        Some(id) => info.with_container(&id),
        None => info,
    }
}

/// The name of this host. In a container, it is that of the container.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of a user, from the local file of users alone. A name service may take long to answer, and a connection
/// must not wait for it. Without a name, the number.
fn user_name(uid: u32) -> String {
    let users = fs::read(USERS).unwrap_or_default();
    name_in(&String::from_utf8_lossy(&users), uid).unwrap_or_else(|| uid.to_string())
}

fn name_in(users: &str, uid: u32) -> Option<String> {
    let named = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    };
    users.lines().find_map(named)
}

/// The id of the container of this process, as container tools print it; `None` if there is none, or it is not visible.
fn container_id() -> Option<String> {
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let of_cgroup = read("/proc/self/cgroup").ok().and_then(|text| id_in_cgroups(&text));
    // With a cgroup namespace, only the files that the container tool has mounted show the id.
    of_cgroup.or_else(|| id_in_mounts(&read("/proc/self/mountinfo").ok()?))
}

/// The id in a line such as `0::/system.slice/docker-<id>.scope` or `4:memory:/docker/<id>`. The innermost container
/// counts.
fn id_in_cgroups(text: &str) -> Option<String> {
    let parts = text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.rsplit('/'));
    parts.map(|part| part.strip_suffix(".scope").unwrap_or(part)).find_map(|part| {
        let id = part.rsplit('-').next().unwrap_or(part);
        short_id(id)
    })
}

/// The id in the source of a file that container tools mount, such as
/// `… /var/lib/docker/containers/<id>/hostname /etc/hostname …`.
fn id_in_mounts(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (source, target) = (fields.nth(3)?, fields.next()?);
        let is_of_a_tool = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"].contains(&target);
        is_of_a_tool.then(|| source.split('/').find_map(short_id))?
    })
}

/// The first digits of a container id, which container tools print and accept.
fn short_id(id: &str) -> Option<String> {
    let is_id = id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then(|| id[..SHORT_ID].to_owned())
}

const USERS: &str = "/etc/passwd";

const SHORT_ID: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    #[test]
    fn this_process_has_a_host_a_process_id_and_a_user_and_no_command_line() {
        let info = this_process();
        assert_eq!(info.pid(), Some(std::process::id()));
        assert!(info.host().is_some() && info.user().is_some(), "{info:?}");
        assert_eq!(info.command(), None);
    }

    #[test]
    fn a_user_is_named_by_the_local_file_and_otherwise_by_number() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nbroken\n:x:7:7::/:\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!((name_in(users, 7), name_in(users, 4_000_000_000)), (None, None));
    }

    #[test]
    fn a_container_is_found_by_its_cgroup() {
        for path in [
            format!("0::/system.slice/docker-{ID}.scope"),
            format!("12:pids:/user.slice\n4:memory:/docker/{ID}"),
            format!("0::/kubepods.slice/kubepods-pod8f3a.slice/cri-containerd-{ID}.scope"),
            format!("0::/machine.slice/libpod-{ID}.scope/container"),
        ] {
            assert_eq!(id_in_cgroups(&path).as_deref(), Some("9f86d081884c"), "{path}");
        }
        for path in ["0::/", "0::/user.slice/user-1000.slice/session-2.scope", "", "::"] {
            assert_eq!(id_in_cgroups(path), None, "{path}");
        }
    }

    #[test]
    fn a_container_with_its_own_cgroup_namespace_is_found_by_the_files_that_its_tool_mounts() {
        let mount =
            |source: &str, target: &str| format!("1 0 8:1 {source} {target} rw - ext4 /dev/sda1 rw\n");
        let docker =
            mount("/", "/") + &mount(&format!("/var/lib/docker/containers/{ID}/hostname"), "/etc/hostname");
        assert_eq!(id_in_mounts(&docker).as_deref(), Some("9f86d081884c"));
        let podman = mount(&format!("/overlay-containers/{ID}/userdata/hosts"), "/etc/hosts");
        assert_eq!(id_in_mounts(&podman).as_deref(), Some("9f86d081884c"));
        // An image layer that is mounted on a host is not the container of this process.
        let host = mount("/", "/") + &mount(&format!("/docker/{ID}"), "/mnt");
        assert_eq!(id_in_mounts(&host), None);
        assert_eq!(id_in_mounts("short line\n"), None);
    }
}
