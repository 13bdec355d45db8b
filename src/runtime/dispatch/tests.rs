use super::super::kit::{call, image, says, shared};
use super::*;
use crate::ids::{Seq, SessionId};
use crate::protocol::blob::BlobHash;
use crate::protocol::message::Role;

#[tokio::test]
async fn the_built_in_model_waits_for_no_room() {
    let (_folder, shared) = shared();
    shared.call_blobs.forget_permits(usize::MAX);
    let call = call(vec![says(Role::User, vec![image(BlobHash::of(b"png"), 3)])]);
    let feed = Feed::new(SessionId::parse("s1").unwrap(), Seq::default());
    let tenant = TenantId::parse("default").unwrap();
    assert!(answer(&shared, &feed, &tenant, &call).await.is_ok());
}
