use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::{FenceError, FencingToken};
use super::mark::{Content, FenceMark, Tail};
use super::mark_file::MarkFile;
use super::place::Place;
use super::step::{Step, pass};
use crate::Token;

/// The fence of one file: its mark, and what this handle remembers of it.
#[derive(Debug)]
pub(super) struct Sidecar {
    path: PathBuf,
    kind: Kind,
    lock_wait: Duration,
    /// Lets one thread of this handle write at a time. The lock of the mark then excludes other handles and processes.
    turn: Mutex<()>,
    memory: Mutex<Memory>,
}

/// The two kinds of fenced files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Log,
}

#[derive(Clone, Debug, Default)]
struct Memory {
    /// The greatest token that the file has shown to this handle.
    seen: Option<FencingToken>,
    /// The mark file and the token in it that this handle has put on the disk.
    on_disk: Option<((u64, u64), Token)>,
}

/// What to do if a file has content and no mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unmarked {
    Refuse,
    Adopt,
}

/// A token that was admitted. The lock is held until this is dropped.
#[derive(Debug)]
pub(super) struct Admitted<'p> {
    sidecar: &'p Sidecar,
    mark_file: MarkFile<'p>,
    token: FencingToken,
    mark: FenceMark,
    // After the mark file: its lock is released first.
    _turn: MutexGuard<'p, ()>,
}

impl Sidecar {
    pub(super) fn new(path: &Path, kind: Kind) -> Self {
        // A relative path keeps its meaning if the process changes its directory. An empty path fails at its first use.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, kind, lock_wait: LOCK_WAIT, turn: Mutex::default(), memory: Mutex::default() }
    }

    pub(super) fn with_lock_wait(self, lock_wait: Duration) -> Self {
        Self { lock_wait, ..self }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn place(&self) -> Result<Place, FenceError> {
        Place::find(&self.path)
    }

    /// The mark without the lock, if there is one.
    pub(super) fn peek(&self, place: &Place) -> Result<Option<FenceMark>, FenceError> {
        self.peek_for(place, None)
    }

    fn peek_for(
        &self,
        place: &Place,
        offered: Option<&FencingToken>,
    ) -> Result<Option<FenceMark>, FenceError> {
        // The file must show what was seen before this read. Another thread may see more during it.
        let before = self.memory().clone();
        place.data()?;
        let mark = MarkFile::peek(place)?;
        if let Some(mark) = &mark {
            self.become_kind(place, &mut mark.clone())?;
        }
        if let Some(offered) = offered.or(before.seen.as_ref()) {
            before.check(place, offered, mark.as_ref())?;
        }
        self.memory().note(mark.as_ref().map(|mark| &mark.token));
        Ok(mark)
    }

    /// Refuses a token that is stale already, before anything is prepared for it. Only [`admit`](Self::admit) admits one.
    pub(super) fn refuse_early(&self, place: &Place, token: &FencingToken) -> Result<(), FenceError> {
        let mark = self.peek_for(place, Some(token))?;
        token.check(place.resource(), mark.as_ref().map(|mark| &mark.token))
    }

    /// Takes the lock, and admits the token. Creates the mark of a file that has none and no content.
    pub(super) fn admit<'p>(
        &'p self,
        place: &'p Place,
        token: &FencingToken,
    ) -> Result<Admitted<'p>, FenceError> {
        self.admit_or(place, token, Unmarked::Refuse)
    }

    /// The same, and creates the mark of a file that has content.
    pub(super) fn admit_adopting<'p>(
        &'p self,
        place: &'p Place,
        token: &FencingToken,
    ) -> Result<Admitted<'p>, FenceError> {
        self.admit_or(place, token, Unmarked::Adopt)
    }

    fn admit_or<'p>(
        &'p self,
        place: &'p Place,
        token: &FencingToken,
        unmarked: Unmarked,
    ) -> Result<Admitted<'p>, FenceError> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..CREATE_TRIES {
            let Some(mark_file) = MarkFile::lock(place, self.lock_wait)? else {
                self.memory().check(place, token, None)?;
                self.create(place, token, unmarked)?;
                continue;
            };
            let mut mark = mark_file.read()?;
            self.become_kind(place, &mut mark)?;
            self.memory().check(place, token, Some(&mark))?;
            let checked = token.check(place.resource(), Some(&mark.token));
            self.memory().note(Some(&mark.token));
            checked?;
            pass(Step::Admitted).map_err(|errno| place.io_error("cannot lock", place.name(), errno))?;
            return Ok(Admitted { sidecar: self, mark_file, token: token.clone(), mark, _turn: turn });
        }
        Err(place.foreign("its mark disappears as often as it is created: find the program that removes it"))
    }

    /// Creates the mark. It is as good as a seal by this token.
    fn create(&self, place: &Place, token: &FencingToken, unmarked: Unmarked) -> Result<(), FenceError> {
        let size = place.data()?.map_or(0, |data| data.st_size.unsigned_abs());
        if size > 0 && unmarked == Unmarked::Refuse {
            // A mark is older than the content that was written under it. So a mark that is missing after the content was
            // seen was not just being created.
            if place.directory().status_of(&place.mark_name()).is_ok() {
                return Ok(());
            }
            return Err(place.foreign(format!(
                "it has {size} bytes and no mark {}. If it was fenced before, its mark was lost: stop all earlier writers. \
                 Then adopt the file under token {} of lease {} (adopt_blocking, in the command --adopt)",
                place.path_of(&place.mark_name()).display(),
                token.token(),
                token.name()
            )));
        }
        let content = match (self.kind, unmarked) {
            (Kind::File, _) => Content::File,
            // Not the size: what another program appends from here on is not adopted.
            (Kind::Log, Unmarked::Refuse) => Content::Log(Tail::Settled(0)),
            (Kind::Log, Unmarked::Adopt) => Content::Log(Tail::Settled(size)),
        };
        MarkFile::create(place, &FenceMark { token: token.clone(), content })
    }

    /// Fails for the mark of the other kind. A file that has no content yet may become either.
    fn become_kind(&self, place: &Place, mark: &mut FenceMark) -> Result<(), FenceError> {
        let (content, words) = match (self.kind, mark.content) {
            (Kind::File, Content::File) | (Kind::Log, Content::Log(_)) => return Ok(()),
            (Kind::File, Content::Log(_)) => {
                (Content::File, "it is fenced as a log: append to it, or put another file")
            }
            (Kind::Log, Content::File) => (
                Content::Log(Tail::Settled(0)),
                "it is fenced as a file that is replaced as a whole: put it, or append to another file",
            ),
        };
        let is_new = matches!(mark.content, Content::File | Content::Log(Tail::Settled(0)));
        if !is_new || place.data()?.is_some_and(|data| data.st_size > 0) {
            return Err(place.foreign(words));
        }
        mark.content = content;
        // The mark on the disk is of the other kind.
        self.memory().on_disk = None;
        Ok(())
    }

    /// Raises the mark without a write.
    pub(super) fn seal(&self, token: &FencingToken) -> Result<(), FenceError> {
        let place = self.place()?;
        self.admit(&place, token)?.raise()
    }

    /// Forgets what this handle has seen.
    pub(super) fn forget(&self) {
        *self.memory() = Memory::default();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admitted<'_> {
    pub(super) fn mark(&self) -> &FenceMark {
        &self.mark
    }

    /// Raises the mark to the admitted token, on the disk.
    ///
    /// This costs a sync of the mark, once for each token and handle: a mark that this handle has put on the disk under the
    /// same token stays as it is.
    pub(super) fn raise(&mut self) -> Result<(), FenceError> {
        if self.is_on_disk() { Ok(()) } else { self.write(self.mark.content) }
    }

    /// True if this handle has put the mark on the disk under the admitted token.
    fn is_on_disk(&self) -> bool {
        let on_disk = Some((self.mark_file.id(), self.token.token()));
        self.sidecar.memory().on_disk == on_disk && self.mark.token == self.token
    }

    /// Writes the mark under the admitted token, with this content, on the disk.
    ///
    /// It is written even if the same mark is there: its writer may have died before the sync, and a sync of a page that
    /// another process wrote may have failed before.
    pub(super) fn write(&mut self, content: Content) -> Result<(), FenceError> {
        self.write_unsynced(content)?;
        self.mark_file.sync()?;
        let mut memory = self.sidecar.memory();
        memory.note(Some(&self.token));
        memory.on_disk = Some((self.mark_file.id(), self.token.token()));
        Ok(())
    }

    /// Writes the mark under the admitted token, with this content, so that it is on the disk before the size of a file that
    /// grows from here on.
    ///
    /// A new token is on the disk when this returns: a smaller one must not be admitted after a power cut.
    pub(super) fn write_before_growth(&mut self, content: Content) -> Result<(), FenceError> {
        if !self.is_on_disk() {
            return self.write(content);
        }
        self.write_unsynced(content)?;
        self.mark_file.sync_before_growth()
    }

    /// Writes the mark under the admitted token, which is on the disk already.
    pub(super) fn write_unsynced(&mut self, content: Content) -> Result<(), FenceError> {
        let mark = FenceMark { token: self.token.clone(), content };
        self.mark_file.write(&mark)?;
        self.mark = mark;
        Ok(())
    }
}

impl Memory {
    /// Fails if the file shows less than it has shown before.
    fn check(
        &self,
        place: &Place,
        offered: &FencingToken,
        mark: Option<&FenceMark>,
    ) -> Result<(), FenceError> {
        let Some(seen) = &self.seen else { return Ok(()) };
        let shown = match mark {
            None => Token::ZERO,
            Some(mark) if mark.token.name() != seen.name() => {
                return Err(place.foreign(format!(
                    "its mark is of lease {}, and was of lease {} before: find out what changed it",
                    mark.token.name(),
                    seen.name()
                )));
            }
            Some(mark) => mark.token.token(),
        };
        if shown >= seen.token() {
            return Ok(());
        }
        let (resource, offered) = (place.resource().to_owned(), offered.clone());
        Err(FenceError::WentBack { resource, offered, seen: seen.token(), shown })
    }

    fn note(&mut self, shown: Option<&FencingToken>) {
        let Some(shown) = shown else { return };
        if self.seen.as_ref().is_none_or(|seen| seen.token() < shown.token()) {
            self.seen = Some(shown.clone());
        }
    }
}

/// Maximum wait for other writers. A write keeps the lock for two or three syncs of the disk.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Attempts to create a mark and find it.
const CREATE_TRIES: u32 = 8;
