use crate::Samples;

/// Pace of the measured operations.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each after a pause, from which processors and server have to wake up.
    Lone,
    /// One directly after the other.
    InARow,
}

impl Pace {
    /// Measures an operation at this pace.
    pub async fn take<T>(self, samples: &mut Samples, work: impl Future<Output = T>) -> T {
        match self {
            Self::Lone => samples.take_lone(work).await,
            Self::InARow => samples.take_async(work).await,
        }
    }
}
