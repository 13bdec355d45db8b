use super::*;
use crate::effects::llm::kit::call;
use crate::protocol::error::ErrorCode;

const BYTES_MAX: usize = 4096;

/// What `pieces` of an answer come to, and how many deltas they made.
fn answered(
    pieces: impl FnOnce(&mut Reply<'_>) -> Result<(), CallFailure>,
) -> (Result<(), CallFailure>, usize) {
    let call = call(Vec::new());
    let mut shown = 0;
    let mut deltas = |_: Delta<'_>| shown += 1;
    let result = pieces(&mut Reply::new(&call, BYTES_MAX, &mut deltas));
    (result, shown)
}

fn assert_too_large(result: Result<(), CallFailure>) {
    let failure = result.unwrap_err();
    assert_eq!((failure.error.code, failure.retryable), (Some(ErrorCode::ProviderError), false));
}

#[test]
fn text_reasoning_and_tool_calls_share_one_bound() {
    let half = "x".repeat(BYTES_MAX / 2);
    let (result, shown) = answered(|reply| {
        reply.reasoning(&half)?;
        reply.text(&half)
    });
    assert_eq!((result, shown), (Ok(()), 2));
    let (result, shown) = answered(|reply| {
        reply.text(&half)?;
        reply.reasoning(&half)?;
        reply.reasoning("y")
    });
    assert_too_large(result);
    assert_eq!(shown, 2);
    let (result, shown) = answered(|reply| {
        reply.reasoning(&half)?;
        let index = reply.open_call("tool")?;
        reply.arguments(index, &half)
    });
    assert_too_large(result);
    assert_eq!(shown, 2);
}

#[test]
fn a_tool_name_is_bounded_where_it_comes_in() {
    let longest = "n".repeat(NAME_BYTES_MAX);
    let (result, shown) = answered(|reply| {
        reply.open_call(&longest)?;
        let index = reply.open_call("")?;
        reply.name_call(index, &longest)
    });
    assert_eq!((result, shown), (Ok(()), 3));
    let longer = "n".repeat(NAME_BYTES_MAX + 1);
    let (result, shown) = answered(|reply| reply.open_call(&longer).map(|_| ()));
    assert_too_large(result);
    assert_eq!(shown, 0);
    let (result, shown) = answered(|reply| {
        let index = reply.open_call("")?;
        reply.name_call(index, &longer)
    });
    assert_too_large(result);
    assert_eq!(shown, 1);
}
