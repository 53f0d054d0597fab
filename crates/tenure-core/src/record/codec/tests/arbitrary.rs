//! Arbitrary records that keep the rules.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use tenure_store::StoreTime;

use crate::record::codec::{KNOWN, RENEWS_MAX, time};
use crate::record::{
    Closure, End, Kind, LastSuccess, Nonce, Past, Record, Revocation, State, TermProcess, Ttl, Unstoppable,
    Witness,
};
use crate::{Holder, ProcessInfo, Token, WallTime};

/// Any valid record.
pub(super) fn record() -> impl Strategy<Value = Record> {
    // Boxed: the strategies are too large for the stack of a test.
    prop_oneof![3 => lease().boxed(), 1 => plain_key().boxed()]
}

/// Any plain key, with an entry or without one.
fn plain_key() -> impl Strategy<Value = Record> {
    (lease().boxed(), holder().boxed(), any::<[u8; 32]>(), nonce(), any::<bool>()).prop_map(
        |(lease, owner, hash, term, present)| Record {
            kind: Kind::Key,
            state: if present { State::Held } else { State::Vacant },
            // An entry without a ttl never runs out.
            ttl: lease.ttl.filter(|_| present),
            term: if present { term } else { lease.term },
            holder: present.then_some(owner).map(Arc::new),
            secret_hash: present.then_some(hash),
            value: if present { lease.value } else { "".into() },
            witness: None,
            history: Arc::new([]),
            unstoppable: None,
            last_success: None,
            process: None,
            ..lease
        },
    )
}

/// Any lease.
fn lease() -> impl Strategy<Value = Record> {
    let head = (state(), nonce(), 1..=Token::MAX.get(), ttl(), nonce(), 0..(1u64 << 53));
    let body = (option::of(witness()), option::of(any::<[u8; 32]>()), holder(), value());
    let unstoppable = (nonce(), reason())
        .prop_map(|(term, because)| Arc::new(Unstoppable { term, because: because.into() }));
    let last_success = (1..=Token::MAX.get(), 0..(1u64 << 53)).prop_map(|(token, began)| LastSuccess {
        token: Token::new(token).expect("within the range"),
        began: StoreTime::from_micros(began),
    });
    let said = (option::of(unstoppable), option::of(last_success), option::of(process()));
    let tail = (vec(past(), 0..=Record::HISTORY_MAX), wall(), wall(), said, unknown());
    (head, body, tail, any::<bool>()).prop_map(|(head, body, tail, granted)| {
        let (state, term, token, ttl, nonce, sequence) = head;
        let (witness, secret_hash, holder, value) = body;
        let (history, granted_at, written_at, (unstoppable, last_success, process), unknown) = tail;
        let held = matches!(state, State::Held | State::Revoked(_));
        let granted = granted || held;
        Record {
            kind: Kind::Lease,
            ttl: (granted || matches!(state, State::Reserved(_))).then_some(ttl),
            state,
            term: if granted { term } else { Nonce::ZERO },
            token: Token::new(token).expect("within the range"),
            nonce,
            sequence,
            witness: witness.filter(|_| held).map(Arc::new),
            secret_hash: secret_hash.filter(|_| held),
            holder: held.then_some(holder).map(Arc::new),
            value: value.into(),
            history: history.into(),
            granted_at: if granted { granted_at } else { WallTime::default() },
            written_at,
            unstoppable,
            last_success,
            process: process.map(Arc::new),
            unknown: unknown.into(),
        }
    })
}

fn state() -> impl Strategy<Value = State> {
    let revocation = (name(), reason(), nonce()).prop_map(|(by, because, nonce)| {
        State::Revoked(Arc::new(Revocation { by: by.into(), because: because.into(), nonce }))
    });
    let closure = (name(), reason()).prop_map(|(by, because)| {
        State::Closed(Arc::new(Closure { by: by.into(), because: because.into() }))
    });
    prop_oneof![
        3 => Just(State::Held),
        2 => Just(State::Vacant),
        1 => name().prop_map(|successor| State::Reserved(successor.into())),
        1 => revocation,
        1 => closure,
    ]
}

fn nonce() -> impl Strategy<Value = Nonce> {
    prop_oneof![1 => Just(1), 1 => Just(u128::MAX), 8 => 1..=u128::MAX].prop_map(Nonce::from_bits)
}

fn ttl() -> impl Strategy<Value = Ttl> {
    (Ttl::MIN.as_millis()..=Ttl::MAX.as_millis())
        .prop_map(|millis| Ttl::from_millis(millis).expect("within the range"))
}

fn wall() -> impl Strategy<Value = WallTime> {
    (0..=time::LATEST.as_millis()).prop_map(WallTime::from_millis)
}

fn witness() -> impl Strategy<Value = Witness> {
    let plain = "[0-9a-zA-Z_-][0-9a-zA-Z._-]{0,63}";
    (plain, any::<u64>(), option::of(plain)).prop_map(|(name, inode, boot)| Witness { name, inode, boot })
}

/// Any process: a text that is too long for it is cut, as one of a user would be.
fn process() -> impl Strategy<Value = TermProcess> {
    let texts = (option::of(value()), option::of(value()), option::of(value()), vec(value(), 0..4));
    (nonce(), texts, option::of(any::<u32>()), option::of(1..=RENEWS_MAX)).prop_map(
        |(term, (host, user, container, words), pid, renews_ms)| {
            let mut info = ProcessInfo::default().with_command(&words);
            if let Some(host) = host {
                info = info.with_host(&host);
            }
            if let Some(user) = user {
                info = info.with_user(&user);
            }
            if let Some(container) = container {
                info = info.with_container(&container);
            }
            if let Some(pid) = pid {
                info = info.with_pid(pid);
            }
            TermProcess { term, info: Arc::new(info), renews_ms }
        },
    )
}

fn holder() -> impl Strategy<Value = Holder> {
    (name(), btree_map(name(), name(), 0..=4), option::of(name())).prop_map(|(id, labels, address)| {
        let mut holder = Holder::new(&id).expect("a good id");
        for (name, text) in &labels {
            holder = holder.label(name, text).expect("a good label");
        }
        match address {
            Some(address) => holder.at(&address).expect("a good address"),
            None => holder,
        }
    })
}

fn past() -> impl Strategy<Value = Past> {
    let end = prop_oneof![
        Just(End::Released),
        Just(End::RanOut),
        Just(End::Died),
        Just(End::Other("handed_over".into())),
        (name(), reason()).prop_map(|(by, because)| End::Revoked { by: by.into(), because: because.into() }),
    ];
    (0..=Token::MAX.get(), name(), wall(), wall(), end).prop_map(
        |(token, holder, granted_at, ended_at, end)| Past {
            token: Token::new(token).expect("within the range"),
            holder: holder.into(),
            granted_at,
            ended_at,
            end,
        },
    )
}

/// Up to fifty characters of any kind but control characters: at most two hundred bytes.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9.-]{1,40}", "\\PC{1,50}", "[\"\\\\/é𝄞]{1,50}"]
}

fn reason() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 4 => name()]
}

/// Any text, control characters included.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        2 => any::<String>(),
        1 => "[\\x00-\\x1f\"\\\\]{0,200}",
        1 => "\\PC{900,1024}",
    ]
}

/// Fields of later versions, with texts that this version would never write.
fn unknown() -> impl Strategy<Value = Vec<(String, String)>> {
    let json = prop_oneof![
        Just("null".to_owned()),
        Just("-0.0e+00".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("\"\\ud800 half a pair\"".to_owned()),
        Just("{ \"tenure\" : 2,\n\t\"tenure\" : [ ] }".to_owned()),
        Just(format!("{}{}", "[".repeat(900), "]".repeat(900))),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a text")),
    ];
    let named = |(name, json): (String, String)| (!KNOWN.contains(&name.as_str())).then_some((name, json));
    prop_oneof![
        3 => Just(Vec::new()),
        1 => btree_map(any::<String>(), json, 0..4).prop_map(move |fields| fields.into_iter().filter_map(named).collect()),
    ]
}
