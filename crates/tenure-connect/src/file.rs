use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode;
use tenure::Error;
use tenure::store::{File, FileBuilder};
use tenure_store::{Guarantees, Store};

use crate::UrlError;

/// A directory, its users, and the accepted risks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    path: PathBuf,
    is_shared: bool,
    foreign_owner: bool,
    writable_by_others: bool,
    file_systems: Vec<String>,
}

impl FilePlace {
    pub(crate) fn new(path: &Path) -> Result<Self, UrlError> {
        if !path.is_absolute() {
            return Err(UrlError::new(format!(
                "{path:?} is a relative path, which depends on the current directory: write it like {EXAMPLE}"
            )));
        }
        if path.file_name().is_none() {
            return Err(UrlError::new(format!("{path:?} cannot be a store: write it like {EXAMPLE}")));
        }
        if path.as_os_str().as_bytes().contains(&0) {
            return Err(UrlError::new(format!(
                "a path cannot contain a zero byte (%00): write it like {EXAMPLE}"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            is_shared: false,
            foreign_owner: false,
            writable_by_others: false,
            file_systems: vec![],
        })
    }

    /// Parses the part after `file:`.
    pub(crate) fn parse(rest: &str) -> Result<Self, UrlError> {
        if rest.contains('#') {
            return Err(UrlError::new(
                "the URL of a store cannot have a part after '#': write %23 where it belongs to the path",
            ));
        }
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let mut place = Self::new(&path(place)?)?;
        for option in crate::options::options(query) {
            place.set(&option)?;
        }
        Ok(place)
    }

    fn set(&mut self, option: &str) -> Result<(), UrlError> {
        match option.split_once('=') {
            Some(("share", "group")) => self.is_shared = true,
            Some(("share", other)) => {
                return Err(UrlError::new(format!(
                    "a file store cannot be shared with {other:?}: write share=group, which shares it with the users \
                     in the group of its directory"
                )));
            }
            Some(("accept", "foreign-owner")) => self.foreign_owner = true,
            Some(("accept", "writable-by-others")) => self.writable_by_others = true,
            // The name of a file system. The error of a refused directory names the one to accept. No such name has a
            // dash.
            Some(("accept", name))
                if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                let name = name.to_ascii_lowercase();
                if !self.file_systems.contains(&name) {
                    self.file_systems.push(name);
                }
            }
            Some(("accept", name)) => {
                return Err(UrlError::new(format!(
                    "{name:?} is not a risk that a file store can accept: use foreign-owner, writable-by-others, or \
                     the name of a file system such as nfs"
                )));
            }
            _ => {
                return Err(UrlError::new(format!(
                    "a file store has no option {option:?}: it has accept, as in {EXAMPLE}?accept=foreign-owner, and \
                     share, as in {EXAMPLE}?share=group"
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(self.builder().open(&self.path)?))
    }

    pub(crate) fn open_to_read(&self) -> Result<Option<Arc<dyn Store>>, Error> {
        let store = self.builder().open_to_read(&self.path)?;
        Ok(store.map(|store| Arc::new(store) as Arc<dyn Store>))
    }

    pub(crate) fn guarantees(&self) -> Result<Guarantees, Error> {
        self.builder().guarantees(&self.path)
    }

    /// True if a store with this name is in this directory, whatever options the name or this URL has.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        name.split('?').next() == Some(&self.identity())
    }

    /// The URL of the directory without links in its path, and without options.
    pub(crate) fn identity(&self) -> String {
        File::url_of(&self.resolved().path)
    }

    /// The same place without links in its path, as the open store names it. So several spellings have one name.
    pub(crate) fn resolved(&self) -> Self {
        let resolved = self.path.ancestors().find_map(|above| {
            // A path that does not exist yet has no links.
            let rest = self.path.strip_prefix(above).ok()?;
            Some(above.canonicalize().ok()?.components().chain(rest.components()).collect::<PathBuf>())
        });
        Self { path: resolved.unwrap_or_else(|| self.path.clone()), ..self.clone() }
    }

    fn builder(&self) -> FileBuilder {
        let mut builder = File::builder();
        if self.is_shared {
            builder = builder.share_with_group();
        }
        if self.foreign_owner {
            builder = builder.accept_foreign_owner();
        }
        if self.writable_by_others {
            builder = builder.accept_writable_by_others();
        }
        self.file_systems.iter().fold(builder, FileBuilder::accept_file_system)
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&File::url_of(&self.path))?;
        let named = [(self.foreign_owner, "foreign-owner"), (self.writable_by_others, "writable-by-others")];
        let named = named.iter().filter(|(accepted, _)| *accepted).map(|(_, name)| *name);
        let accepted = named.chain(self.file_systems.iter().map(String::as_str));
        let accepted = accepted.map(|name| format!("accept={name}"));
        let options = self.is_shared.then(|| "share=group".to_owned()).into_iter().chain(accepted);
        for (at, option) in options.enumerate() {
            write!(f, "{}{option}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// The path of a URL, byte for byte.
fn path(place: &str) -> Result<PathBuf, UrlError> {
    let Some(place) = place.strip_prefix("//") else {
        if place.starts_with('/') {
            return Err(UrlError::new(format!("file:{place} lacks two slashes: write file://{place}")));
        }
        return Err(UrlError::new(format!(
            "file:{place} has a relative path, which depends on the current directory: write it like {EXAMPLE}"
        )));
    };
    if place.is_empty() || place.bytes().all(|byte| byte == b'/') {
        return Err(UrlError::new(format!("file://{place} names no directory: write it like {EXAMPLE}")));
    }
    if !place.starts_with('/') {
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        let whole = if host == "localhost" { format!("/{path}") } else { format!("/{place}") };
        return Err(UrlError::new(format!(
            "file://{place} names a host, {host:?}, but a file store is on this machine: write file://{whole}"
        )));
    }
    let mut bytes = place.bytes();
    while let Some(byte) = bytes.next() {
        let broken = byte == b'%' && !(is_hex(bytes.next()) && is_hex(bytes.next()));
        if broken {
            return Err(UrlError::new(format!(
                "file://{place} has a '%' without two hexadecimal digits: write %25 where it belongs to the path"
            )));
        }
    }
    let bytes: Vec<u8> = percent_decode(place.as_bytes()).collect();
    Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
}

fn is_hex(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_hexdigit())
}

const EXAMPLE: &str = "file:///var/lib/tenure";
