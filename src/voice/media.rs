//! Keeps the sound of recent segments for the pages that play or mirror it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::kernel::ids::MediaId;
use crate::kernel::ports::{MediaStore, Pcm};

/// How much sound is kept unless told otherwise: about twelve minutes at 24 kHz.
pub const DEFAULT_LIMIT: usize = 64 * 1024 * 1024;

/// A [`MediaStore`] in memory, bounded by the bytes of its samples. Ids are random (UUID version 4,
/// 122 bits), so nobody finds sound by guessing.
pub struct MediaShelf {
    limit: usize,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    sounds: HashMap<MediaId, Arc<Pcm>>,
    oldest_first: VecDeque<MediaId>,
    bytes: usize,
}

impl Default for MediaShelf {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl MediaShelf {
    /// A shelf that keeps at most `limit` bytes of samples.
    pub fn new(limit: usize) -> Self {
        Self { limit, shelf: Mutex::default() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(pcm: &Pcm) -> usize {
    std::mem::size_of_val(pcm.samples.as_slice())
}

impl MediaStore for MediaShelf {
    fn put(&self, pcm: Arc<Pcm>) -> MediaId {
        let id = MediaId(uuid::Uuid::new_v4().simple().to_string());
        let mut shelf = self.shelf();
        shelf.bytes += bytes(&pcm);
        shelf.sounds.insert(id.clone(), pcm);
        shelf.oldest_first.push_back(id.clone());
        while shelf.bytes > self.limit {
            let Some(oldest) = shelf.oldest_first.pop_front() else { break };
            if let Some(dropped) = shelf.sounds.remove(&oldest) {
                shelf.bytes -= bytes(&dropped);
            }
        }
        id
    }

    fn get(&self, id: &MediaId) -> Option<Arc<Pcm>> {
        self.shelf().sounds.get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(samples: usize) -> Arc<Pcm> {
        Arc::new(Pcm { rate: 24_000, samples: vec![0.1; samples] })
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let shelf = MediaShelf::new(4 * 100);
        let ids: Vec<_> = [40, 40, 40].map(|n| shelf.put(sound(n))).into();
        assert!(shelf.get(&ids[0]).is_none());
        assert_eq!(shelf.get(&ids[1]).unwrap().samples.len(), 40);
        assert_eq!(shelf.get(&ids[2]).unwrap().samples.len(), 40);
    }

    #[test]
    fn what_is_larger_than_the_shelf_is_not_kept() {
        let shelf = MediaShelf::new(4 * 100);
        let id = shelf.put(sound(101));
        assert!(shelf.get(&id).is_none());
        let next = shelf.put(sound(100));
        assert!(shelf.get(&next).is_some());
    }

    #[test]
    fn ids_do_not_follow_each_other() {
        let shelf = MediaShelf::default();
        let (one, two) = (shelf.put(sound(1)), shelf.put(sound(1)));
        assert_ne!(one, two);
        assert!(one.0.len() >= 32 && one.0[..8] != two.0[..8]);
    }
}
