//! Entry types: files, folders, and types that a bundle cannot contain.

use crate::archive::ArchiveEntry;
use crate::code::Code;

const TYPE: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// Set-user, set-group and sticky bits.
const SPECIAL: u32 = 0o007_000;

const DOS_VOLUME: u32 = 0x08;
const DOS_FOLDER: u32 = 0x10;
const DOS_DEVICE: u32 = 0x40;
/// An NTFS link or mount.
const DOS_REPARSE: u32 = 0x400;

/// Returns the reason if the entry is not a plain file or folder.
pub(super) fn refused(entry: &ArchiveEntry) -> Option<(Code, &'static str)> {
    let special = |detail| Some((Code::SpecialFile, detail));
    let mode = entry.attributes >> 16;
    let is_folder = entry.is_folder();
    if mode & TYPE == LINK || entry.extras.link {
        return Some((Code::Symlink, "The entry is a symbolic or hard link."));
    }
    match mode & TYPE {
        0 => {}
        FILE if !is_folder => {}
        FOLDER if is_folder => {}
        FILE | FOLDER => return special("The entry's mode and name disagree whether it is a folder."),
        _ => return special("The entry is a device, a pipe or a socket."),
    }
    if mode & SPECIAL != 0 {
        return special("The entry has a set-user, set-group or sticky bit.");
    }
    if entry.attributes & (DOS_VOLUME | DOS_DEVICE) != 0 {
        return special("The entry is a volume label or a device.");
    }
    if entry.attributes & DOS_REPARSE != 0 {
        return special("The entry's attributes say that it is a link of NTFS.");
    }
    if entry.attributes & DOS_FOLDER != 0 && !is_folder {
        return special("The entry's attributes and name disagree whether it is a folder.");
    }
    if is_folder && entry.size > 0 {
        return special("The folder has a content.");
    }
    None
}
