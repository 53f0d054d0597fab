//! Cost of a gate: of a token that is admitted, of a pass, and of a refusal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tenure::fence::{FencingToken, Gate};
use tenure_testkit::{Samples, key, print_ratio};

pub(crate) fn gate() {
    let gate = Gate::new("the ledger", key("billing/nightly"));
    // As in a server: the name of the token is not the same memory as the name of the gate.
    let [older, token]: [FencingToken; 2] =
        ["billing/nightly=1762000000000001", "billing/nightly=1762000000000002"]
            .map(|text| text.parse().unwrap());
    gate.admit(&token).unwrap();
    let word = AtomicU64::new(token.token().get());
    let mut load = Samples::new("a bare atomic load");
    let mut admit = Samples::new("admit");
    let mut refuse = Samples::new("a refusal");
    let mut enter = Samples::new("enter, and the end of the pass");
    let mut parse = Samples::new("parse the header of a request");
    for _ in 0..super::ROUNDS {
        load.take_thousand(|| word.load(Ordering::SeqCst));
        admit.take_thousand(|| gate.admit(std::hint::black_box(&token)).is_ok());
        refuse.take_thousand(|| gate.admit(std::hint::black_box(&older)).is_err());
        enter.take_thousand(|| gate.enter(std::hint::black_box(&token)).now_or_never().is_some());
        parse.take_thousand(|| tenure::fence::message::token(["billing/nightly=1762000000000002"]).is_ok());
    }
    println!("\n{load}\n{admit}\n{refuse}\n{enter}\n{parse}");
    print_ratio("admit, to 20 ns", admit.at(50), Duration::from_nanos(20), Some(1.0));
}
