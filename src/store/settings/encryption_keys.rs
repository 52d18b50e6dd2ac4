//! Encryption of secrets at rest, and its keys: XChaCha20-Poly1305 with a random nonce for each secret.
//!
//! A key is 32 bytes, written in base64. A key file or environment variable may contain several keys, separated by white space: the first
//! key encrypts, all keys decrypt. So a new key can be put before the old key, and every process can decrypt with both until no secret is
//! encrypted with the old key. A ciphertext is bound to its table, to its store, and to the endpoint or name that it belongs to: a
//! ciphertext that is copied to another row cannot be decrypted.
//!
//! A key file is read again before a secret is encrypted, and when a secret names a key that is not known yet. So a running process need
//! not be restarted to use an added key.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::store::{Error, Result};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// The number of bytes of a key's id, which is the beginning of the key's hash.
const ID_BYTES: usize = 8;
/// The greatest size of a key file: some 1,400 keys.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The encryption keys of a process. Without a key, secrets are stored unencrypted.
#[derive(Clone, Default)]
pub struct SecretKeys(Arc<KeyRing>);

#[derive(Default)]
struct KeyRing {
    /// The file from which the keys are read, if they are in a file.
    file: Option<PathBuf>,
    keys: RwLock<Vec<EncryptionKey>>,
}

#[derive(Clone)]
struct EncryptionKey {
    id: String,
    cipher: XChaCha20Poly1305,
}

/// A secret as it is stored.
pub(in crate::store) struct EncryptedSecret {
    pub bytes: Vec<u8>,
    /// The id of the key that the secret is encrypted with. `None`: `bytes` is the secret itself, unencrypted.
    pub key_id: Option<String>,
}

/// The row that a secret belongs to.
#[derive(Clone, Copy)]
pub(in crate::store) struct SecretRow<'a> {
    pub table: &'static str,
    /// The id of the store that the row belongs to; empty if it belongs to no store.
    pub store: &'a str,
    pub owner: &'a str,
}

impl std::fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKeys")
    }
}

impl SecretKeys {
    /// Parses the keys in a text. `source` names the text in errors.
    pub fn of_text(text: &str, source: &str) -> Result<Self> {
        Ok(Self(Arc::new(KeyRing { file: None, keys: RwLock::new(parse(text, source)?) })))
    }

    /// Reads the keys from a file.
    pub fn of_file(path: &Path) -> Result<Self> {
        let keys = read(path)?;
        Ok(Self(Arc::new(KeyRing { file: Some(path.to_owned()), keys: RwLock::new(keys) })))
    }

    /// Reads the keys from a file. Creates the file with a new key if it does not exist.
    pub fn of_own_file(path: &Path) -> Result<Self> {
        if !path.exists() {
            make(path).map_err(|error| unusable(path, "cannot be made", &error))?;
        }
        Self::of_file(path)
    }

    /// Generates a new key, which is kept in memory only.
    pub fn fresh() -> Result<Self> {
        Self::of_text(&new_key()?, "a new key")
    }

    /// Returns the id of the key that encrypts, if there is a key.
    pub fn current_id(&self) -> Option<String> {
        self.first().map(|key| key.id)
    }

    /// Reads the key file again, if there is one.
    pub(in crate::store) fn refresh(&self) -> Result<()> {
        if let Some(file) = &self.0.file {
            *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = read(file)?;
        }
        Ok(())
    }

    /// Returns whether the key with this id is known, so that its secrets can be decrypted.
    pub fn knows(&self, id: &str) -> bool {
        self.named(id).is_some()
    }

    pub(in crate::store) fn seal(&self, secret: &[u8], place: SecretRow<'_>) -> Result<EncryptedSecret> {
        self.refresh()?;
        let Some(key) = self.first() else { return Ok(EncryptedSecret { bytes: secret.to_owned(), key_id: None }) };
        let mut bytes = vec![0; NONCE_BYTES];
        fill(&mut bytes)?;
        let nonce: [u8; NONCE_BYTES] = bytes.as_slice().try_into().unwrap_or_default();
        let sealed = key.cipher.encrypt(&nonce.into(), Payload { msg: secret, aad: &place.bound() });
        bytes.extend(sealed.map_err(|_| Error::SecretKey("a secret could not be encrypted".to_owned()))?);
        Ok(EncryptedSecret { bytes, key_id: Some(key.id) })
    }

    /// Decrypts a secret. `Err`: why it cannot be decrypted.
    pub(in crate::store) fn open(&self, stored: EncryptedSecret, place: SecretRow<'_>) -> std::result::Result<Vec<u8>, String> {
        let Some(id) = stored.key_id else { return Ok(stored.bytes) };
        let key = self.named(&id).or_else(|| {
            self.refresh().ok()?;
            self.named(&id)
        });
        let key = key.ok_or_else(|| format!("the secret is encrypted with the key `{id}`, which this server does not have"))?;
        let damaged = || format!("the secret is damaged: the key `{id}` does not decrypt it");
        let (nonce, sealed) = stored.bytes.split_at_checked(NONCE_BYTES).ok_or_else(damaged)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| damaged())?;
        key.cipher.decrypt(&nonce.into(), Payload { msg: sealed, aad: &place.bound() }).map_err(|_| damaged())
    }

    fn first(&self) -> Option<EncryptionKey> {
        self.0.keys.read().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    fn named(&self, id: &str) -> Option<EncryptionKey> {
        self.0.keys.read().unwrap_or_else(PoisonError::into_inner).iter().find(|key| key.id == id).cloned()
    }
}

impl SecretRow<'_> {
    /// Returns the associated data to which the ciphertext is bound. Ids contain no NUL character, so two different rows have different
    /// data.
    fn bound(&self) -> Vec<u8> {
        [self.table, self.store, self.owner].join("\0").into_bytes()
    }
}

/// Generates a new key, and returns it as it is written in a key file.
fn new_key() -> Result<String> {
    let mut bytes = [0; KEY_BYTES];
    fill(&mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| Error::SecretKey(format!("there is no randomness: {error}")))
}

fn parse(text: &str, source: &str) -> Result<Vec<EncryptionKey>> {
    let keys: Option<Vec<EncryptionKey>> = text.split_whitespace().map(EncryptionKey::of).collect();
    keys.filter(|keys| !keys.is_empty()).ok_or_else(|| {
        let right = "each must be 32 bytes in base64, as `openssl rand -base64 32` prints them";
        Error::SecretKey(format!("{source} holds no keys: {right}"))
    })
}

fn read(path: &Path) -> Result<Vec<EncryptionKey>> {
    let text = text_of(path).map_err(|error| unusable(path, "cannot be read", &error))?;
    parse(&text, &format!("the key file `{}`", path.display()))
}

/// Reads a key file. Refuses a pipe or a device: a key file is read more than once, which a pipe or a device does not allow.
fn text_of(path: &Path) -> io::Result<String> {
    // The type is tested before the file is opened: opening a pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    let bytes = File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if bytes as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn unusable(path: &Path, what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::SecretKey(format!("the key file `{}` {what}: {error}", path.display()))
}

impl EncryptionKey {
    fn of(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == KEY_BYTES)?;
        let hash = Sha256::new().chain_update("counterpart secret key\0").chain_update(&bytes).finalize();
        let id = hash.iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { id, cipher: XChaCha20Poly1305::new_from_slice(&bytes).ok()? })
    }
}

/// Creates a key file with a new key. Only the owner of the file can read it. If another process creates the file at the same time, the
/// complete file of one process stays: a file that exists is never replaced.
fn make(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    let key = new_key().map_err(io::Error::other)?;
    let whole = written(folder, &format!("{key}\n"))?;
    match fs::hard_link(whole.path(), path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked.and_then(|()| File::open(folder)?.sync_all()),
    }
}

/// A rotation of the keys in a key file. It holds a lock until it is dropped, so that there is one rotation at a time.
pub struct Rotation {
    /// The key file, with symbolic links resolved.
    file: PathBuf,
    folder: PathBuf,
    /// The lock is on the folder, since the file itself is replaced.
    _lock: File,
}

impl Rotation {
    /// Begins a rotation. Waits until no other process rotates the keys of this file.
    pub fn begin(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| unusable(path, "cannot be changed", &error);
        let file = fs::canonicalize(path).map_err(failed)?;
        let folder = folder_of(&file).to_owned();
        let lock = File::open(&folder).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Self { file, folder, _lock: lock })
    }

    /// Puts a new key before the keys of the file, so that the new key encrypts from now on. Keeps the key that encrypted before, and the
    /// other keys for whose ids `wanted` returns true.
    pub fn add_key(&self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let failed = |error: io::Error| unusable(&self.file, "cannot be changed", &error);
        let text = text_of(&self.file).map_err(failed)?;
        let former = text.split_whitespace().enumerate();
        let kept = former.filter(|(at, text)| *at == 0 || EncryptionKey::of(text).is_some_and(|key| wanted(&key.id))).map(|(_, text)| text);
        let keys: String = std::iter::once(new_key()?.as_str()).chain(kept).map(|key| format!("{key}\n")).collect();
        let whole = written(&self.folder, &keys).map_err(failed)?;
        whole.persist(&self.file).map_err(|error| failed(error.error))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a temporary file with this text, synced to disk. Only its owner can read it.
fn written(folder: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut whole = NamedTempFile::new_in(folder)?;
    whole.write_all(text.as_bytes())?;
    whole.as_file().sync_all()?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PLACE: SecretRow<'static> = SecretRow { table: "webhook_secrets", store: "shop", owner: "hook" };

    fn sealed(keys: &SecretKeys) -> (Vec<u8>, Option<String>) {
        let stored = keys.seal(b"secret", PLACE).unwrap();
        (stored.bytes, stored.key_id)
    }

    fn open(keys: &SecretKeys, (bytes, key_id): &(Vec<u8>, Option<String>), place: SecretRow<'_>) -> std::result::Result<Vec<u8>, String> {
        keys.open(EncryptedSecret { bytes: bytes.clone(), key_id: key_id.clone() }, place)
    }

    #[test]
    fn a_secret_is_decrypted_only_with_its_key_and_in_its_row() {
        let keys = SecretKeys::fresh().unwrap();
        let stored = sealed(&keys);
        assert!(!stored.0.windows(6).any(|bytes| bytes == b"secret"));
        assert_ne!(stored, sealed(&keys));
        assert_eq!(open(&keys, &stored, PLACE).unwrap(), b"secret");
        for place in
            [SecretRow { table: "bridge_secrets", ..PLACE }, SecretRow { store: "other", ..PLACE }, SecretRow { owner: "other", ..PLACE }]
        {
            assert!(open(&keys, &stored, place).unwrap_err().contains("damaged"));
        }
        let reason = open(&SecretKeys::fresh().unwrap(), &stored, PLACE).unwrap_err();
        assert!(reason.contains(&keys.current_id().unwrap()) && reason.contains("does not have"), "{reason}");
        let short = (vec![1; 3], stored.1.clone());
        assert!(open(&keys, &short, PLACE).unwrap_err().contains("damaged"));
    }

    #[test]
    fn without_a_key_a_secret_is_stored_as_it_is() {
        let none = SecretKeys::default();
        let stored = sealed(&none);
        assert_eq!(stored, (b"secret".to_vec(), None));
        assert_eq!(open(&SecretKeys::fresh().unwrap(), &stored, PLACE).unwrap(), b"secret");
    }

    #[test]
    fn an_error_for_an_invalid_key_names_the_variable_and_not_the_key() {
        for text in ["", "  \n", "abc", "AAAA", &STANDARD.encode([0; 33])] {
            let error = SecretKeys::of_text(text, "COUNTERPART_SECRET_KEY").unwrap_err().to_string();
            assert!(error.contains("COUNTERPART_SECRET_KEY") && error.contains("openssl rand -base64 32"), "{error}");
            assert!(text.trim().is_empty() || !error.contains(text.trim()), "a key is not repeated: {error}");
        }
    }

    #[test]
    fn processes_that_start_at_once_share_one_key_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.key");
        let ids = std::thread::scope(|scope| {
            let made: Vec<_> = (0..8).map(|_| scope.spawn(|| SecretKeys::of_own_file(&path).unwrap().current_id())).collect();
            made.into_iter().map(|made| made.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(ids.iter().all(|id| id.is_some() && *id == ids[0]), "{ids:?}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_added_key_is_used_and_the_former_one_still_decrypts() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.key");
        let (running, other) = (SecretKeys::of_own_file(&path).unwrap(), SecretKeys::of_own_file(&path).unwrap());
        let former = running.current_id().unwrap();
        let old = sealed(&running);
        Rotation::begin(&path).unwrap().add_key(|_| false).unwrap();
        let new = sealed(&running);
        assert_ne!(new.1.as_deref(), Some(former.as_str()));
        for stored in [&old, &new] {
            assert_eq!(open(&other, stored, PLACE).unwrap(), b"secret");
        }
        Rotation::begin(&path).unwrap().add_key(|_| false).unwrap();
        assert!(open(&SecretKeys::of_file(&path).unwrap(), &old, PLACE).is_err());
        assert!(open(&SecretKeys::of_file(&path).unwrap(), &new, PLACE).is_ok());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn rotations_at_once_lose_no_key() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.key");
        let keys = SecretKeys::of_own_file(&path).unwrap();
        let old = sealed(&keys);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| Rotation::begin(&path).unwrap().add_key(|_| true).unwrap());
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 9);
        assert_eq!(open(&SecretKeys::of_file(&path).unwrap(), &old, PLACE).unwrap(), b"secret");
    }

    #[test]
    fn a_link_to_a_key_file_stays_a_link() {
        let home = tempfile::tempdir().unwrap();
        let (path, link) = (home.path().join("file.key"), home.path().join("link"));
        let keys = SecretKeys::of_own_file(&path).unwrap();
        let old = sealed(&keys);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Rotation::begin(&link).unwrap().add_key(|_| false).unwrap();
        assert!(link.is_symlink());
        let new = sealed(&SecretKeys::of_file(&link).unwrap());
        assert_ne!(new.1, old.1);
        assert_eq!(open(&keys, &new, PLACE).unwrap(), b"secret");
    }

    #[test]
    fn errors_for_an_unusable_key_file_name_it_and_contain_no_key() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.key");
        let key = STANDARD.encode([7; KEY_BYTES]);
        let long = format!("{key}\n").repeat(2000);
        let texts = [
            ("", "holds no keys"),
            (&key[..40], "holds no keys"),
            (&format!("{} {}", &key[..20], &key[20..]), "holds no keys"),
            (&STANDARD.encode([7; 31]), "holds no keys"),
            (&format!("{key}\n{}", &key[..40]), "holds no keys"),
            (&format!("\u{feff}{key}"), "holds no keys"),
            (&long, "longer than 65536 bytes"),
        ];
        for (text, reason) in texts {
            fs::write(&path, text).unwrap();
            let error = SecretKeys::of_file(&path).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()) && error.contains(reason) && !error.contains(&key[..20]), "{error}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(SecretKeys::of_file(&path).unwrap_err().to_string().contains("cannot be read"));
        for (path, reason) in
            [(home.path(), "no regular file"), (Path::new("/dev/zero"), "no regular file"), (&home.path().join("none"), "No such file")]
        {
            let error = SecretKeys::of_file(path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        // A dangling link, through which no key file can be made.
        let dangling = home.path().join("dangling");
        std::os::unix::fs::symlink(home.path().join("none"), &dangling).unwrap();
        assert!(SecretKeys::of_own_file(&dangling).unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn a_key_file_damaged_at_run_time_prevents_encryption_but_not_decryption() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.key");
        let keys = SecretKeys::of_own_file(&path).unwrap();
        let stored = sealed(&keys);
        for text in ["", "AAAA"] {
            fs::write(&path, text).unwrap();
            assert_eq!(open(&keys, &stored, PLACE).unwrap(), b"secret");
            // The key in memory is no longer in the file. A secret that was encrypted with it could not be decrypted after the next start.
            assert!(keys.seal(b"secret", PLACE).is_err());
        }
    }
}
