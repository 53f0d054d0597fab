use super::Judgement;

/// L6: every contender that keeps trying wins before it has missed twenty terms per contender.
pub(crate) fn wins_in_time(missed: u64, contenders: u64) -> Judgement {
    let most = TERMS_PER_CONTENDER * contenders;
    if missed <= most {
        return Ok(());
    }
    Err(format!("a contender missed {missed} terms of others, more than {most}"))
}

const TERMS_PER_CONTENDER: u64 = 20;
