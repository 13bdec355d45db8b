use std::pin::pin;
use std::task::Poll;

use super::super::kit::{call, image, says, shared};
use super::super::shared::CALL_BLOBS_KIB_MAX;
use super::*;
use crate::protocol::blob::Uri;
use crate::protocol::content::{BlobFile, BlobUrl};

fn tenant() -> TenantId {
    TenantId::parse("default").unwrap()
}

fn file(hash: BlobHash) -> ContentPart {
    let file = BlobFile { filename: "a.txt".to_owned(), file_data: hash };
    ContentPart::File { file, mime: "text/plain".to_owned(), size: 0 }
}

/// Blobs of so many bytes each, which the store has.
async fn kept(shared: &Shared, sizes: &[usize]) -> (Kept, Vec<BlobHash>) {
    let blob = |(number, size): (usize, &usize)| {
        let bytes = Bytes::from(vec![u8::try_from(number).unwrap(); *size]);
        Upload { hash: BlobHash::of(&bytes), mime: "image/png".to_owned(), bytes }
    };
    let uploads: Vec<Upload> = sizes.iter().enumerate().map(blob).collect();
    let hashes = uploads.iter().map(|upload| upload.hash).collect();
    (keep(&shared.store, &tenant(), uploads).await.unwrap(), hashes)
}

#[tokio::test]
async fn a_call_loads_what_it_can_send_and_nothing_else() {
    let (_folder, shared) = shared();
    let (_kept, hashes) = kept(&shared, &[10; 8]).await;
    let mime = || "video/mp4".to_owned();
    let link = ContentPart::link(Uri::Blob(hashes[2]), None, None);
    let video =
        ContentPart::VideoUrl { video_url: BlobUrl { url: hashes[3] }, mime: mime(), size: 10 };
    let attachment = ContentPart::Attachment {
        id: "a".to_owned(),
        mime: mime(),
        size: 10,
        uri: Uri::Blob(hashes[4]),
    };
    let call = call(vec![
        says(Role::System, vec![image(hashes[5], 10)]),
        says(Role::User, vec![image(hashes[0], 10), link, video, attachment]),
        says(Role::Assistant, vec![image(hashes[6], 10)]),
        says(Role::Tool, vec![file(hashes[1])]),
    ]);
    let loaded = of_call(&shared, &tenant(), &call).await;
    let mut expected = vec![hashes[0], hashes[1]];
    expected.sort();
    assert_eq!(loaded.bytes.into_keys().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_newest_blobs_count_where_not_all_fit() {
    let (_folder, shared) = shared();
    let (_kept, hashes) = kept(&shared, &[BLOB_BYTES_MAX; 6]).await;
    let each = |hash: &BlobHash| says(Role::User, vec![image(*hash, BLOB_BYTES_MAX)]);
    let call = call(hashes.iter().map(each).collect());
    let loaded = of_call(&shared, &tenant(), &call).await;
    let mut expected = hashes[1..].to_vec();
    expected.sort();
    assert_eq!(loaded.bytes.keys().copied().collect::<Vec<_>>(), expected);
    let room = CALL_BLOBS_KIB_MAX - CALL_BYTES_MAX / 1024;
    assert_eq!(shared.call_blobs.available_permits(), room);
}

#[tokio::test]
async fn a_call_waits_for_room_and_has_it_until_it_ends() {
    let (_folder, shared) = shared();
    let (_kept, hashes) = kept(&shared, &[2048, 10]).await;
    // Of the second no size is recorded, so it counts as the largest.
    let call = call(vec![says(Role::User, vec![image(hashes[0], 2048), file(hashes[1])])]);
    let kib = 2 + BLOB_BYTES_MAX / 1024;
    let others = u32::try_from(CALL_BLOBS_KIB_MAX - kib + 1).unwrap();
    let others = Arc::clone(&shared.call_blobs).try_acquire_many_owned(others).unwrap();

    let tenant = tenant();
    let mut loading = pin!(of_call(&shared, &tenant, &call));
    let poll = std::future::poll_fn(|context| Poll::Ready(loading.as_mut().poll(context)));
    assert!(poll.await.is_pending(), "there is no room");
    drop(others);
    let loaded = loading.await;
    assert_eq!(loaded.bytes.len(), 2);
    assert_eq!(shared.call_blobs.available_permits(), CALL_BLOBS_KIB_MAX - kib);
    drop(loaded);
    assert_eq!(shared.call_blobs.available_permits(), CALL_BLOBS_KIB_MAX);
}

#[tokio::test]
async fn a_call_without_blobs_takes_no_room() {
    let (_folder, shared) = shared();
    shared.call_blobs.close();
    let call = call(vec![Arc::new(Message::text(Role::User, "hello"))]);
    assert!(of_call(&shared, &tenant(), &call).await.bytes.is_empty());
}
