use tenure_store::Store;

use crate::record::RECORD_MAX;
use crate::{Error, ErrorKind};

/// Fails for a store that does not declare the guarantees that leases need. The error names the store and every missing
/// guarantee.
///
/// Sends nothing: this checks what the store *declares*, and a store that declares nothing guarantees nothing.
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
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Joins names as in `a, b and c`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
