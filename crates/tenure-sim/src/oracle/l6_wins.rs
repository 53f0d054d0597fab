use super::Judgement;

/// L6: every contender that keeps trying wins before so many terms of others as twenty for each contender.
pub(crate) fn wins_in_time(missed: u64, contenders: u64) -> Judgement {
    let most = TERMS_PER_CONTENDER * contenders;
    if missed <= most {
        return Ok(());
    }
    Err(format!("a contender saw {missed} terms of others pass, and {most} are the most"))
}

const TERMS_PER_CONTENDER: u64 = 20;
