//! Fetches a file from an address, going on where an earlier try ended.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::pull::{Failure, Part};

/// How often a transfer that broke is taken up again while each try brings something.
const TRIES: u32 = 8;

/// Fetches `url` into the part file until it has `bytes` bytes.
pub(super) async fn fetch(
    client: &reqwest::Client,
    url: &str,
    bytes: u64,
    part: &Part<'_>,
    stall: Duration,
) -> Result<(), Failure> {
    let mut tries = 0;
    loop {
        let had = part.len();
        match attempt(client, url, bytes, part, stall).await {
            Ok(()) => return Ok(()),
            Err(Failure::Broken(reason)) => {
                tries += 1;
                if tries >= TRIES || part.len() <= had {
                    return Err(Failure::Source(reason));
                }
            }
            Err(Failure::Restart) if had > 0 => {}
            Err(other) => return Err(other),
        }
    }
}

async fn attempt(
    client: &reqwest::Client,
    url: &str,
    bytes: u64,
    part: &Part<'_>,
    stall: Duration,
) -> Result<(), Failure> {
    let mut have = part.resume(url);
    if have >= bytes {
        // Whole or too long: the hash decides, and a wrong one is deleted.
        return Ok(());
    }
    let mut request = client.get(url).header(ACCEPT_ENCODING, "identity");
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
        if let Some(etag) = part.etag() {
            request = request.header(IF_RANGE, etag);
        }
    }
    let answer = tokio::time::timeout(stall, request.send())
        .await
        .map_err(|_| Failure::Host(format!("no answer within {stall:?}")))?
        .map_err(|error| {
            if error.is_connect() || error.is_timeout() {
                Failure::Host("can't be reached".into())
            } else {
                Failure::Source(format!("can't be fetched: {}", error.without_url()))
            }
        })?;
    match answer.status() {
        StatusCode::PARTIAL_CONTENT if starts_at(&answer, have) => {}
        StatusCode::OK => have = 0,
        // The server has another file now, or answers a part that was not asked for: from the start.
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
            part.forget();
            return Err(Failure::Restart);
        }
        status => return Err(Failure::Source(format!("answers {status}"))),
    }
    if let Some(length) = answer.content_length()
        && have + length != bytes
    {
        return Err(Failure::Source(format!("offers {} bytes instead of {bytes}", have + length)));
    }
    let etag = answer.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
    part.begin(url, etag)?;
    receive(answer, have, bytes, part, stall).await
}

fn starts_at(answer: &reqwest::Response, have: u64) -> bool {
    answer
        .headers()
        .get(CONTENT_RANGE)
        .and_then(|range| range.to_str().ok())
        .is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}

async fn receive(
    answer: reqwest::Response,
    have: u64,
    bytes: u64,
    part: &Part<'_>,
    stall: Duration,
) -> Result<(), Failure> {
    let mut file = open_at(part.path(), have).await.map_err(Failure::disk)?;
    let mut have = have;
    let mut body = answer.bytes_stream();
    let ended = loop {
        match tokio::time::timeout(stall, body.next()).await {
            Err(_) => break Err(Failure::Broken(format!("nothing came for {stall:?}"))),
            Ok(None) => break Ok(()),
            Ok(Some(Err(_))) => {
                break Err(Failure::Broken(format!(
                    "the transfer broke at {have} of {bytes} bytes"
                )));
            }
            Ok(Some(Ok(chunk))) => {
                have += chunk.len() as u64;
                if have > bytes {
                    break Err(Failure::Wrong(format!("gives more than {bytes} bytes")));
                }
                file.write_all(&chunk).await.map_err(Failure::disk)?;
                part.progress(have);
            }
        }
    };
    file.flush().await.map_err(Failure::disk)?;
    ended?;
    if have < bytes {
        return Err(Failure::Broken(format!("the transfer ended at {have} of {bytes} bytes")));
    }
    Ok(())
}

async fn open_at(path: &Path, have: u64) -> std::io::Result<tokio::fs::File> {
    let mut file =
        tokio::fs::OpenOptions::new().create(true).write(true).truncate(false).open(path).await?;
    file.set_len(have).await?;
    file.seek(std::io::SeekFrom::End(0)).await?;
    Ok(file)
}
