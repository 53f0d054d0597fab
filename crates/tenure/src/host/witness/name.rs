//! Names of witnesses: random, and never reused.

/// The name of a new witness.
pub(super) fn of(random: u128) -> String {
    format!("{random:0DIGITS$x}{ENDING}")
}

/// The random number in the name of a witness.
pub(super) fn random_of(name: &str) -> Option<u128> {
    u128::from_str_radix(name.strip_suffix(ENDING).filter(|_| is_name(name))?, 16).ok()
}

/// True if this can be the name of a witness. A record cannot make Tenure open any other file.
pub(crate) fn is_name(name: &str) -> bool {
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_suffix(ENDING).is_some_and(|stem| stem.len() == DIGITS && stem.bytes().all(hex))
}

const ENDING: &str = ".witness";
const DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_witness_is_unlike_any_other_name() {
        assert!(is_name(&of(0)) && is_name(&of(u128::MAX)));
        for name in ["", ".witness", "a.witness", "../0.witness", "tenure.mark", &of(7).to_uppercase()] {
            assert!(!is_name(name), "{name}");
        }
        assert!(!is_name(&of(7).replace("000", "../")));
        assert_eq!((random_of(&of(7)), random_of("7")), (Some(7), None));
    }
}
