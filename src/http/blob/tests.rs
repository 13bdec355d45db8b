use http::Request;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::*;
use crate::control::limits::Limits;
use crate::http::body::RequestBody;
use crate::http::connection::kit::{HANG, Wire, within};
use crate::http::connection::{Patience, serve};

const GET: &str = "GET /blob HTTP/1.1\r\nHost: a\r\n\r\n";
/// More than all buffers on the way take.
const LARGE_BYTES: usize = 64 * 1024 * 1024;

/// A connection that answers with so many bytes, which must be taken within `patience`; the room
/// that each answer takes all of.
async fn serving(bytes: usize, patience: Duration) -> (Wire, Arc<Semaphore>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wire = Wire::connect(listener.local_addr().unwrap()).await;
    let (socket, address) = within(listener.accept()).await.unwrap();
    let room = Arc::new(Semaphore::new(1));
    let answering = Arc::clone(&room);
    let service = move |_: Request<RequestBody>, peer| {
        let place = Arc::clone(&answering).try_acquire_owned().unwrap();
        let body = held(Bytes::from(vec![b'x'; bytes]), place, patience, peer);
        std::future::ready(Response::new(ReplyBody::stream(Pieces(body))))
    };
    tokio::spawn(async move {
        let (_shutdown, stop) = watch::channel(false);
        let limits = Limits::default();
        // What it is cut off for here is not that it takes nothing at all.
        let patience = Patience { write: HANG, ..Patience::new(&limits) };
        drop(serve(socket, address, &limits, patience, service, stop).await);
    });
    (wire, room)
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_cut_off_and_its_place_given_back() {
    let (mut wire, room) = serving(LARGE_BYTES, Duration::from_millis(50)).await;
    wire.send(GET).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (rest, ended) = wire.rest().await;
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert!(rest.len() < LARGE_BYTES);
    drop(within(room.acquire()).await.unwrap());
}

#[tokio::test]
async fn a_place_is_given_back_when_a_body_is_taken() {
    let (mut wire, room) = serving(1_000_000, HANG).await;
    // On one connection: nobody was cut off.
    for _ in 0..3 {
        wire.send(GET).await;
        assert_eq!(wire.answer().await.body.len(), 1_000_000);
        drop(within(room.acquire()).await.unwrap());
    }
}

#[tokio::test]
async fn a_place_is_held_by_the_last_piece() {
    let room = Arc::new(Semaphore::new(1));
    let place = Arc::clone(&room).try_acquire_owned().unwrap();
    let (sender, _gone) = oneshot::channel();
    let bytes = Bytes::from(vec![0; 2 * PIECE_BYTES_MAX]);
    let mut held = Bytes::from_owner(Held { bytes, _place: place, _alive: sender });
    let piece = held.split_to(1);
    drop(held);
    assert_eq!(room.available_permits(), 0);
    drop(piece);
    assert_eq!(room.available_permits(), 1);
}

#[test]
fn a_reader_has_time_for_what_it_reads() {
    assert_eq!(patience(0), Duration::from_mins(1));
    assert_eq!(patience(1), Duration::from_secs(61));
    assert_eq!(patience(BLOB_BYTES_MAX), Duration::from_secs(124));
}

#[test]
fn a_blob_without_a_size_counts_as_the_largest() {
    let of = |size| room(&BlobInfo { mime: String::new(), size });
    assert_eq!((of(0), of(1), of(5000)), (BLOB_BYTES_MAX, 1, 5000));
}
