/// The id of this boot, as the kernel writes it; `None` if it is missing or not a random id.
///
/// A container may have another file mounted over the kernel's. An empty id, or one that is equal on two machines,
/// identifies no boot, so only the form of a random id is accepted.
pub(crate) fn boot_id() -> Option<String> {
    parse(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

fn parse(text: &str) -> Option<String> {
    let id = text.trim_ascii();
    let is_part = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let is_id = id.len() == 36 && id.bytes().enumerate().all(is_part);
    let is_set = id.bytes().any(|byte| !matches!(byte, b'0' | b'-'));
    (is_id && is_set).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_form_of_a_random_id_names_a_boot() {
        let id = "5d2cf2ad-62e7-4a34-bd4e-9a1a0f4f6a3c";
        assert_eq!(parse(&format!("{id}\n")).as_deref(), Some(id));
        let nil = "00000000-0000-0000-0000-000000000000\n";
        let long = format!("{id}{id}");
        for text in
            ["", "\n", "unknown", nil, &id[1..], &long, "../../../../etc/passwd", &id.replace('-', "_")]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert!(boot_id().is_some(), "this kernel has one");
    }
}
