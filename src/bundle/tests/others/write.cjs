// Writes the files of a folder as an archive: write.cjs FORM FOLDER ARCHIVE.
const fs = require("node:fs");
const path = require("node:path");

const [form, folder, archive] = process.argv.slice(2);
const files = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)));
const content = (file) => fs.readFileSync(path.join(folder, file));

function jszip() {
    const zip = new (require("jszip"))();
    for (const file of files) zip.file(file, content(file));
    const compression = form === "jszip-store" ? "STORE" : "DEFLATE";
    const streamFiles = form === "jszip-stream";
    zip.generateNodeStream({ type: "nodebuffer", compression, streamFiles }).pipe(fs.createWriteStream(archive));
}

function archiver() {
    const zip = require("archiver")("zip", { store: form === "archiver-store" });
    zip.pipe(fs.createWriteStream(archive));
    zip.directory(folder, false);
    zip.finalize();
}

function yazl() {
    const zip = new (require("yazl").ZipFile)();
    for (const file of files) zip.addFile(path.join(folder, file), file);
    zip.outputStream.pipe(fs.createWriteStream(archive));
    zip.end();
}

function fflate() {
    const entries = Object.fromEntries(files.map((file) => [file, new Uint8Array(content(file))]));
    fs.writeFileSync(archive, require("fflate").zipSync(entries));
}

({ jszip, archiver, yazl, fflate })[form.split("-")[0]]();
