//! Faults that can happen to a request.

use std::time::Duration;

use super::ErrorAnswer;

/// A fault of one request and its answer. A waiting client never waits longer than the fault states.
///
/// A database connection delivers in order: while a command or a reply is late, those behind it are late, too, and a cut
/// affects all of them. It has no second deliveries, and no answers of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Cuts the client off; the server never gets the request.
    CutBefore,
    /// The server answers; the client is cut off without a byte of the answer.
    CutAfter,
    /// Sends the status, the headers and half of the body to the client, then cuts it off. An empty body is announced
    /// as a longer one, so that there is something to cut. Answers that cannot have a body are not changed, and the
    /// fault is skipped.
    CutMidAnswer,
    /// Cuts the client off at once; the server gets the request after this time.
    CutThenDeliver(Duration),
    /// Sends nothing to the client for this time. Then the server gets the request, and the client, if it still waits,
    /// is cut off.
    HangThenDeliver(Duration),
    /// Sends the request to the server twice, one after the other; the client gets the first answer.
    TwiceFirstAnswer,
    /// Sends the request to the server twice, one after the other; the client gets the second answer.
    TwiceSecondAnswer,
    /// The client gets the answer; after this time the server gets the request again.
    AgainLater(Duration),
    /// The request is lost: the client receives nothing for this time, then it is cut off.
    SwallowRequest(Duration),
    /// The answer is lost: the server answers, the client receives nothing for this time, then it is cut off.
    SwallowAnswer(Duration),
    /// The server gets the request after this time.
    DelayRequest(Duration),
    /// The client gets the answer this time after the server gave it.
    DelayAnswer(Duration),
    /// The client gets this answer; the server never gets the request.
    AnswerInstead(ErrorAnswer),
    /// The server answers; the client gets this answer instead.
    AnswerAfter(ErrorAnswer),
    /// Removes the condition, `If-Match`, `If-None-Match` or `x-goog-if-generation-match`, and signs the request again
    /// without it. A request without a condition is forwarded, and the fault is skipped.
    ForgetCondition,
}

impl Fault {
    /// True if it can happen to a command of a database: it needs neither a second delivery, which no database
    /// connection makes, nor an answer of HTTP.
    pub(crate) fn fits_databases(self) -> bool {
        !matches!(
            self,
            Self::TwiceFirstAnswer
                | Self::TwiceSecondAnswer
                | Self::AgainLater(_)
                | Self::AnswerInstead(_)
                | Self::AnswerAfter(_)
                | Self::ForgetCondition
        )
    }

    /// True if the server gets the request late, whether its client still waits or not.
    pub(crate) fn is_late_delivery(self) -> bool {
        matches!(self, Self::CutThenDeliver(_) | Self::HangThenDeliver(_) | Self::DelayRequest(_))
    }
}
