use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::machine::Lost;

const TTL: Duration = Duration::from_secs(16);

/// Three eighths of the ttl: a waiting contender has read the key by then.
const POLL_PERIOD: Duration = Duration::from_secs(6);

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn token(number: u64) -> Token {
    Token::new(number).unwrap()
}

fn new_campaigner() -> Campaigner {
    Campaigner::new("a".into(), Timing::new(TTL).unwrap())
}

fn effects_of(campaigner: &mut Campaigner, now: Instant, input: CampaignInput<'_>) -> Vec<CampaignEffect> {
    let mut effects = Vec::new();
    campaigner.step(now, 0, input, &mut effects);
    effects
}

/// A campaigner that leads under token 7 from second 10.
fn leading() -> Campaigner {
    let mut campaigner = new_campaigner();
    assert_eq!(effects_of(&mut campaigner, at(0), CampaignInput::Start), [CampaignEffect::Acquire]);
    let granted = effects_of(&mut campaigner, at(10), CampaignInput::Granted(token(7)));
    assert_eq!(granted, [CampaignEffect::Lead(token(7))]);
    campaigner
}

/// The end of the wait after a term of token 7 that ended at second 20.
fn waits_after(end: TermEnd) -> (Campaigner, Instant) {
    let mut campaigner = leading();
    let effects = effects_of(&mut campaigner, at(20), CampaignInput::Ended(end));
    let [CampaignEffect::Observe, CampaignEffect::SleepUntil(until)] = effects[..] else {
        panic!("{end:?}: {effects:?}")
    };
    (campaigner, until)
}

#[test]
fn after_a_loss_it_campaigns_at_once() {
    let effects = effects_of(&mut leading(), at(20), CampaignInput::Ended(TermEnd::Lost));
    assert_eq!(effects, [CampaignEffect::Acquire]);
}

#[test]
fn after_its_own_release_or_a_revocation_the_others_try_first_for_one_poll_period() {
    for end in [TermEnd::Released, TermEnd::Revoked] {
        let (mut campaigner, until) = waits_after(end);
        let wait = until.since(at(20));
        assert!(wait > POLL_PERIOD && wait <= POLL_PERIOD * 11 / 10, "{wait:?}");
        let early = effects_of(&mut campaigner, at(22), CampaignInput::Wake);
        assert_eq!(early, [CampaignEffect::SleepUntil(until)]);
        assert_eq!(effects_of(&mut campaigner, until, CampaignInput::Wake), [CampaignEffect::Acquire]);
    }
}

#[test]
fn the_grant_of_another_contender_ends_that_wait_also_if_it_has_the_same_name() {
    let (mut campaigner, _) = waits_after(TermEnd::Released);
    let own = CampaignInput::SawLeader { token: token(7), holder: "a" };
    assert_eq!(
        effects_of(&mut campaigner, at(21), own),
        [],
        "its own record, read before the release landed"
    );
    let twin = CampaignInput::SawLeader { token: token(8), holder: "a" };
    assert_eq!(effects_of(&mut campaigner, at(21), twin), [CampaignEffect::Acquire]);
    assert_eq!(campaigner.leads(), None, "a record with its own name is no grant");
}

#[test]
fn transient_errors_are_retried_after_growing_pauses_and_permanent_ones_are_reported_too() {
    let mut campaigner = new_campaigner();
    effects_of(&mut campaigner, at(0), CampaignInput::Start);
    let mut now = at(0);
    let mut pause_after = |kind, reported: bool| {
        let effects = effects_of(&mut campaigner, now, CampaignInput::Failed(kind));
        assert_eq!(effects.contains(&CampaignEffect::Report), reported, "{kind:?}");
        let Some(CampaignEffect::SleepUntil(until)) = effects.last().copied() else { panic!("{effects:?}") };
        let pause = until.since(now);
        now = until;
        assert_eq!(effects_of(&mut campaigner, now, CampaignInput::Wake), [CampaignEffect::Acquire]);
        pause
    };
    let transient: Vec<_> = (0..12).map(|_| pause_after(ErrorKind::Unavailable, false)).collect();
    assert!(transient[1] == transient[0] * 2 && transient[2] == transient[0] * 4, "{transient:?}");
    assert_eq!(transient[11], Timing::new(TTL).unwrap().period());
    for kind in [ErrorKind::Invalid, ErrorKind::Unsupported, ErrorKind::Misconfigured, ErrorKind::Corrupt] {
        assert!(pause_after(kind, true) >= TTL);
    }
    let longest = (0..40).map(|_| pause_after(ErrorKind::Corrupt, true)).max();
    assert_eq!(longest, Some(Duration::from_secs(60)));
}

#[test]
fn a_node_that_is_not_healthy_does_not_campaign() {
    let mut campaigner = new_campaigner();
    let at_risk = HealthState::AtRisk { resigns_at: at(9) };
    effects_of(&mut campaigner, at(0), CampaignInput::Health(at_risk));
    assert_eq!(effects_of(&mut campaigner, at(0), CampaignInput::Start), []);
    let healthy = CampaignInput::Health(HealthState::Healthy);
    assert_eq!(effects_of(&mut campaigner, at(1), healthy), [CampaignEffect::Acquire]);
    let ill = CampaignInput::Health(HealthState::Failed);
    assert_eq!(effects_of(&mut campaigner, at(2), ill), [CampaignEffect::Cancel]);
    assert_eq!(effects_of(&mut campaigner, at(2), CampaignInput::Granted(token(3))), [], "it was cancelled");
    assert_eq!(effects_of(&mut campaigner, at(3), healthy), [CampaignEffect::Acquire]);
}

#[test]
fn only_its_own_release_and_a_revocation_count_as_such() {
    assert_eq!(TermEnd::from(&Lost::Released), TermEnd::Released);
    let revoked = Lost::Revoked { by: "b".into(), because: "move".into() };
    assert_eq!(TermEnd::from(&revoked), TermEnd::Revoked);
    for lost in [Lost::Expired, Lost::Deleted, Lost::StoreGone, Lost::RenewalFailed, Lost::KeeperGone] {
        assert_eq!(TermEnd::from(&lost), TermEnd::Lost);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(u64),
    Grant,
    Fail(bool),
    End(TermEnd),
    See { newer: bool, own_name: bool },
    Healthy(bool),
    Wake,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..20).prop_map(Step::Pass),
        Just(Step::Grant),
        any::<bool>().prop_map(Step::Fail),
        prop_oneof![Just(TermEnd::Released), Just(TermEnd::Revoked), Just(TermEnd::Lost)].prop_map(Step::End),
        any::<(bool, bool)>().prop_map(|(newer, own_name)| Step::See { newer, own_name }),
        any::<bool>().prop_map(Step::Healthy),
        Just(Step::Wake),
    ]
}

proptest! {
    /// Whatever happens in whatever order: at most one acquire is pending, it leads by its own grant alone, it never
    /// campaigns while it leads or is unhealthy, and after an own release never too early.
    #[test]
    fn a_campaigner_leads_by_its_own_grant_alone_and_lets_the_others_try_first(
        jitter in any::<u32>(),
        script in proptest::collection::vec(steps(), 1..80),
    ) {
        let mut campaigner = new_campaigner();
        let (mut now, mut next_token) = (at(0), 1);
        let (mut pending, mut leads, mut healthy) = (false, None, true);
        let mut not_before: Option<Instant> = None;
        let mut ended = Token::ZERO;
        let start = std::iter::once(None).chain(script.into_iter().map(Some));
        for step in start {
            let mut granted = None;
            let input = match step {
                None => CampaignInput::Start,
                Some(Step::Pass(seconds)) => {
                    now = now + Duration::from_secs(seconds);
                    CampaignInput::Wake
                }
                Some(Step::Grant) if pending => {
                    next_token += 1;
                    (pending, granted) = (false, Some(token(next_token)));
                    CampaignInput::Granted(token(next_token))
                }
                Some(Step::Fail(permanent)) if pending => {
                    pending = false;
                    CampaignInput::Failed(if permanent { ErrorKind::Corrupt } else { ErrorKind::Unavailable })
                }
                Some(Step::End(end)) => {
                    if let Some(token) = std::mem::take(&mut leads) {
                        ended = token;
                        not_before = (end != TermEnd::Lost).then_some(now + POLL_PERIOD);
                    }
                    CampaignInput::Ended(end)
                }
                Some(Step::See { newer, own_name }) => {
                    if newer {
                        next_token += 1;
                    }
                    let token = token(next_token.max(1));
                    if token > ended {
                        not_before = None;
                    }
                    CampaignInput::SawLeader { token, holder: if own_name { "a" } else { "b" } }
                }
                Some(Step::Healthy(now_healthy)) => {
                    healthy = now_healthy;
                    CampaignInput::Health(if healthy { HealthState::Healthy } else { HealthState::Failed })
                }
                Some(Step::Wake | Step::Grant | Step::Fail(_)) => CampaignInput::Wake,
            };
            let mut effects = Vec::new();
            campaigner.step(now, jitter, input, &mut effects);
            for effect in effects {
                match effect {
                    CampaignEffect::Acquire => {
                        prop_assert!(!pending && leads.is_none() && healthy);
                        prop_assert!(not_before.take().is_none_or(|early| now >= early), "too early after {:?}", input);
                        pending = true;
                    }
                    CampaignEffect::Cancel => prop_assert!(std::mem::replace(&mut pending, false)),
                    CampaignEffect::Lead(token) => {
                        prop_assert_eq!(granted.take(), Some(token));
                        leads = Some(token);
                    }
                    CampaignEffect::SleepUntil(until) => prop_assert!(until > now),
                    CampaignEffect::Observe | CampaignEffect::Report => prop_assert!(!pending),
                }
            }
            prop_assert_eq!(campaigner.leads(), leads);
        }
    }
}
