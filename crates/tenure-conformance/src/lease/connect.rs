//! The check at connect, which the library makes before it grants anything.

use tenure::Coordinator;

use crate::check::{Clause, check};
use crate::stop::CheckResult;
use crate::trial::Trial;
use crate::world::wire::Wire;
use crate::world::{World, failed};

pub(crate) const CLAUSE: Clause =
    Clause { name: "connect", checks: &[check!("the library connects to it", connects)] };

/// Connects twice: the second time the scratch key exists.
async fn connects(trial: &Trial<'_>) -> CheckResult {
    let world = World::new(trial)?;
    for number in 0..2 {
        let builder = Coordinator::builder().clock(trial.harness.clock());
        let connecting = builder.connect(Wire::to(trial.connection(number)));
        world.within("connecting", connecting).await?.map_err(failed)?;
    }
    Ok(())
}
