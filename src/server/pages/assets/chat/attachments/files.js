// Short descriptions of files and attachments, and the files in a paste or a drop.

/**
 * @typedef {object} Attachment an uploaded file
 * @property {string} id
 * @property {string} name
 * @property {string} mime_type
 * @property {'image' | 'file'} type
 * @property {string | null} preview_url of an image
 */

/**
 * Reads an attachment from a response or an item.
 * @param {unknown} raw
 * @returns {Attachment | null} null if the value is not an attachment
 */
export function attachmentOf(raw) {
  if (raw === null || typeof raw !== 'object' || typeof raw.id !== 'string' || raw.id === '') return null;
  const text = (value) => (typeof value === 'string' ? value : '');
  return {
    id: raw.id,
    name: text(raw.name) || 'file',
    mime_type: text(raw.mime_type),
    type: raw.type === 'image' ? 'image' : 'file',
    preview_url: text(raw.preview_url) || null,
  };
}

/** The attachments of an item; skips entries that are not attachments. */
export function attachmentsOf(list) {
  return Array.isArray(list) ? list.map(attachmentOf).filter((found) => found !== null) : [];
}

const OFFICE = 'application/vnd.openxmlformats-officedocument.';
/** By media type, or by its part before the slash. */
const TYPES = {
  'application/pdf': 'PDF',
  'application/json': 'JSON',
  'text/csv': 'CSV',
  'text/markdown': 'Markdown',
  'text/plain': 'Text',
  [`${OFFICE}wordprocessingml.document`]: 'Document',
  [`${OFFICE}spreadsheetml.sheet`]: 'Spreadsheet',
  [`${OFFICE}presentationml.presentation`]: 'Presentation',
  'application/vnd.oasis.opendocument.text': 'Document',
  image: 'Image',
  audio: 'Audio',
  video: 'Video',
};

/**
 * The type of a file, as one word.
 * @param {string} mime may be empty, and may have parameters
 * @param {string} name its extension is used if the media type is unknown
 */
export function typeName(mime, name) {
  const base = mime.split(';')[0].trim().toLowerCase();
  for (const key of [base, base.split('/')[0]]) if (Object.hasOwn(TYPES, key)) return TYPES[key];
  const [, extension] = /\.([a-z0-9]{1,5})$/i.exec(name) ?? [];
  return extension ? extension.toUpperCase() : 'File';
}

/** Formats a size in bytes: `1.2 MB`. */
export function sizeName(bytes) {
  const units = ['B', 'KB', 'MB', 'GB'];
  let [size, at] = [bytes, 0];
  // 999.5 would be rounded to 1000.
  while (size >= 999.5 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${at === 0 || size >= 99.5 ? Math.round(size) : Number(size.toFixed(1))} ${units[at]}`;
}

/**
 * The files to attach from a paste. Office programs copy text together with a picture of it; then only the text is pasted.
 * @param {{types: readonly string[], files: Iterable<File>}} data
 * @returns {File[]} empty if the browser should paste text
 */
export function pastedFiles({ types, files }) {
  const isText = types.includes('text/plain') && types.includes('text/html');
  return isText ? [] : [...files];
}

/**
 * The files in a drop.
 * @param {{items: Iterable<object>, files: Iterable<File>}} data
 * @returns {{files: File[], folders: number}} folders cannot be attached
 */
export function droppedFiles({ items, files }) {
  const isFolder = (item) => item.webkitGetAsEntry?.()?.isDirectory === true;
  const entries = [...(items ?? [])].filter(({ kind }) => kind === 'file');
  if (!entries.some(isFolder)) return { files: [...files], folders: 0 };
  const kept = entries.filter((item) => !isFolder(item));
  const found = kept.map((item) => item.getAsFile()).filter((file) => file !== null);
  return { files: found, folders: entries.length - kept.length };
}
