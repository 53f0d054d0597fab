use tenure_store::Store;

use crate::record::RECORD_MAX;
use crate::{Error, Kind};

/// Refuses a store that does not promise what leases need. The error names the store and everything it lacks.
///
/// Nothing is sent: this is about what the store *declares*, and a store that forgot to declare promises nothing.
pub fn check_declared(store: &dyn Store) -> Result<(), Error> {
    let guarantees = store.guarantees();
    let mut missing: Vec<String> = guarantees.missing_for_leases().into_iter().map(str::to_owned).collect();
    if guarantees.value_max < RECORD_MAX {
        missing.push(format!("values of {RECORD_MAX} bytes (it takes {})", guarantees.value_max));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{store} does not promise {}: nothing is granted on it. Use another store, or set this one up so that it can",
        list(&missing)
    );
    Err(Error::new(Kind::Unsupported, message))
}

/// As in `a, b and c`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_store::Guarantees;

    use super::*;
    use crate::store::Memory;

    fn refusal(change: impl FnOnce(&mut Guarantees)) -> Error {
        let store = Memory::builder().name("x").declare(change).build();
        check_declared(&store).expect_err("it declares too little")
    }

    #[test]
    fn a_store_that_promises_everything_is_believed_so_far() {
        check_declared(&Memory::new()).unwrap();
    }

    #[test]
    fn a_forgotten_declaration_is_refused_and_every_gap_is_named() {
        let error = refusal(|guarantees| *guarantees = Guarantees::default());
        assert_eq!(error.kind(), Kind::Unsupported);
        assert_eq!(
            error.to_string(),
            format!(
                "memory:x does not promise atomic create, atomic replace, linearizable reads, keeping acknowledged \
                 writes, a reach, how often a key may be written and values of {RECORD_MAX} bytes (it takes 0): \
                 nothing is granted on it. Use another store, or set this one up so that it can"
            )
        );
    }

    #[test]
    fn each_single_gap_is_enough_to_be_refused() {
        type Gap = fn(&mut Guarantees);
        let gaps: [(Gap, &str); 5] = [
            (|guarantees| guarantees.atomic_create = false, "atomic create"),
            (|guarantees| guarantees.atomic_replace = false, "atomic replace"),
            (|guarantees| guarantees.linearizable_reads = false, "linearizable reads"),
            (|guarantees| guarantees.keeps_acknowledged = false, "keeping acknowledged writes"),
            (|guarantees| guarantees.write_interval = Duration::MAX, "how often a key may be written"),
        ];
        for (gap, name) in gaps {
            let message = refusal(gap).to_string();
            assert!(message.starts_with(&format!("memory:x does not promise {name}: ")), "{message}");
        }
    }

    #[test]
    fn room_for_a_record_to_the_byte_is_enough_and_a_byte_less_is_not() {
        let with = |max| Memory::builder().declare(|guarantees| guarantees.value_max = max).build();
        check_declared(&with(RECORD_MAX)).unwrap();
        let error = check_declared(&with(RECORD_MAX - 1)).unwrap_err();
        assert!(error.to_string().contains(&format!("(it takes {})", RECORD_MAX - 1)), "{error}");
    }
}
