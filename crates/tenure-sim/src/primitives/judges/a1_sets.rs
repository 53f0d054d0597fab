use crate::oracle::Judgement;

/// A1: a set of leases is believed only while every lease of it is held.
pub(crate) fn believes_only_whole(believes: bool, held: &[bool]) -> Judgement {
    match held.iter().position(|held| !held) {
        Some(lost) if believes => Err(format!("a set is believed although its lease {lost} is not held")),
        _ => Ok(()),
    }
}

/// S6: a set ends with the loss of the first of its leases. `goes_on` is true if the machine still counts it as held.
pub(crate) fn ends_with_first_loss(goes_on: bool) -> Judgement {
    if goes_on { Err("a set goes on after the loss of one of its leases".to_owned()) } else { Ok(()) }
}

/// S11: a set that was not granted leaves nothing held.
pub(crate) fn leaves_nothing_held(held: usize) -> Judgement {
    if held == 0 {
        return Ok(());
    }
    Err(format!("a set was reported as denied while {held} of its leases were held"))
}
