//! Listings that show stamps.

use tenure_core::Instant;
use tenure_core::machine::Input;
use tenure_core::slots::{GroupListing, SlotInput};

use super::PrimitivesWorld;
use super::caller::Engine;
use super::calls::LetterBody;
use super::happening::Port;
use crate::rng::Rng;
use crate::tally::Met;
use crate::time::SECOND;

/// The listings of a store that show stamps.
#[derive(Clone, Debug)]
pub(super) struct Listings {
    /// Longest time by which a listing is late.
    pub(super) late_most: u64,
    /// True if they show the sizes of the values.
    sizes: bool,
}

impl Listings {
    /// Draws the listings of a store; `None` if they show no stamps.
    pub(super) fn draw(mut rng: Rng) -> Option<Self> {
        let late_most = rng.pick(&[0, 0, 0, SECOND / 2, 5 * SECOND]);
        let listings = Self { late_most, sizes: rng.chance(700) };
        rng.chance(600).then_some(listings)
    }
}

/// One listing of a group.
#[derive(Debug)]
pub(super) struct SlotListing {
    sent: Instant,
    /// The stamps at the store, once the request has arrived there.
    shown: Option<GroupListing>,
}

impl PrimitivesWorld<'_> {
    pub(super) fn lists_group(&mut self, actor: usize, group: usize) {
        let sent = self.nodes[self.actors[actor].process].local(self.now);
        let key = self.plan.size_key(group);
        let port = self.add_caller(actor, key, Engine::Listing(SlotListing { sent, shown: None }));
        if let Some(attempt) = self.slot_attempt(actor) {
            attempt.listing = Some(port);
        }
        self.send(port, LetterBody::List);
    }

    /// A request for a listing arrives at the store.
    pub(super) fn listing_arrives(&mut self, port: Port, size_key: usize) {
        let (Some(group), Some(listings)) = (self.plan.group_of(size_key), self.plan.listings.clone()) else {
            return;
        };
        let late = if self.rng.chance(200) { self.rng.between(0, listings.late_most) } else { 0 };
        if late > 0 {
            self.tally.met(Met::LateListing);
        }
        let at = self.now.saturating_sub(late);
        let keys = (0..self.plan.keys()).filter_map(|key| Some((key, self.plan.slot_index(group, key)?)));
        let slots = keys.filter_map(|(key, index)| Some((index, self.store[key].stamp(at, listings.sizes)?)));
        let shown =
            GroupListing { size: self.store[size_key].stamp(at, listings.sizes), slots: slots.collect() };
        if let Some(Engine::Listing(listing)) = self.caller(port).map(|caller| &mut caller.engine) {
            listing.shown = Some(shown);
        }
    }

    /// The answer to a listing.
    pub(super) fn group_listed(&mut self, port: Port, input: Input) {
        let Some(caller) = self.callers[port.caller as usize].take() else { return };
        let Engine::Listing(listing) = caller.engine else { return };
        if self.slot_attempt(caller.actor).and_then(|attempt| attempt.listing.take()) != Some(port) {
            return;
        }
        let input = match (input, listing.shown) {
            (Input::Read(Ok(_)), Some(shown)) => SlotInput::Listed { sent: listing.sent, listing: shown },
            _ => SlotInput::NotListed,
        };
        self.step_slot(caller.actor, input);
    }
}
