//! `tenure store guarantees`.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Args, Guarantees};
use crate::exit::Failure;
use crate::output::{self, plain};
use crate::promises::Promise;
use crate::store;
use crate::table;

#[derive(Serialize)]
struct GuaranteesAnswer {
    store: String,
    store_from: String,
    there: bool,
    missing: Vec<&'static str>,
    guarantees: Vec<Value>,
}

/// Prints the guarantees of the store. It only reads.
pub(crate) fn guarantees(args: &Args, guarantees: &Guarantees) -> Result<ExitCode, Failure> {
    let store = match &guarantees.url {
        Some(url) => store::named(url)?,
        None => store::choose(args)?,
    };
    let promises = store.promises()?;
    let (rows, missing) = (promises.rows(), promises.guarantees.missing_for_leases());
    if guarantees.json {
        output::answer_json(&GuaranteesAnswer {
            store: store.url(),
            store_from: store.origin(),
            there: promises.is_there,
            missing,
            guarantees: rows.iter().map(object).collect(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if !promises.is_there {
        output::say(&format!("{} does not exist yet: this is what it would guarantee", plain(&store.url())));
    }
    let cells =
        rows.into_iter().map(|row| [row.title.to_owned(), row.answer, row.means.to_owned()]).collect();
    output::answer(&table::lines(["GUARANTEE", "PROMISED", "WHAT IT MEANS"], cells))?;
    if guarantees.url.is_none() {
        output::say(&format!("store: {}", store.url_and_origin()));
    }
    if !missing.is_empty() {
        output::say(&format!(
            "{} is refused for leases: it lacks {}",
            plain(&store.url()),
            missing.join(", ")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn object(row: &Promise) -> Value {
    json!({ "name": row.name, "value": row.value, "answer": row.answer, "means": row.means })
}
