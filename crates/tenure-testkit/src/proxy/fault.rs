//! What may happen to a request on its way.

use std::time::Duration;

use super::ErrorAnswer;

/// What may happen to one request and its answer. Whoever waits is never left waiting for longer than the fault says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The client is cut off; the server never hears of the request.
    CutBefore,
    /// The server answers; the client is cut off without a byte of it.
    CutAfter,
    /// The client gets the status, the headers and half of the body, and is then cut off. An empty body is announced as a longer
    /// one, so that there is something to cut; answers that cannot have a body are left alone, and the fault is skipped.
    CutMidAnswer,
    /// The client is cut off at once; the server gets the request after this time.
    CutThenDeliver(Duration),
    /// The client hears nothing for this time; then the server gets the request, and the client, if it still waits, is cut off.
    HangThenDeliver(Duration),
    /// The server gets it twice, one after the other; the client gets the first answer.
    TwiceFirstAnswer,
    /// The server gets it twice, one after the other; the client gets the second answer.
    TwiceSecondAnswer,
    /// The client gets the answer; after this time the server gets the request again.
    AgainLater(Duration),
    /// The way to the server is a black hole: the client hears nothing for this time, then it is cut off.
    SwallowRequest(Duration),
    /// The way back is a black hole: the server answers, the client hears nothing for this time, then it is cut off.
    SwallowAnswer(Duration),
    /// The server gets the request after this time.
    DelayRequest(Duration),
    /// The client gets the answer this time after it was given.
    DelayAnswer(Duration),
    /// The client gets this answer; the server never hears of the request.
    AnswerInstead(ErrorAnswer),
    /// The server answers; the client gets this answer in its place.
    AnswerAfter(ErrorAnswer),
    /// The server never hears of the condition, `If-Match` or `If-None-Match`: the request is signed anew without it. A
    /// request without a condition is passed on, and the fault is skipped.
    ForgetCondition,
}
