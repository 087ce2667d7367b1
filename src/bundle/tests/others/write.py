"""Writes the files of a folder as an archive: write.py FORM FOLDER ARCHIVE."""

import os
import sys
import zipfile

form, folder, archive = sys.argv[1:]
method = zipfile.ZIP_STORED if form == "stored" else zipfile.ZIP_DEFLATED


class Pipe:
    """Standard output, which cannot be sought."""

    def write(self, data):
        return sys.stdout.buffer.write(data)

    def flush(self):
        sys.stdout.buffer.flush()


with zipfile.ZipFile(Pipe() if form == "pipe" else archive, "w", method) as writer:
    for place, _, files in os.walk(folder):
        if form == "folders" and place != folder:
            writer.write(place, os.path.relpath(place, folder))
        for name in files:
            path = os.path.join(place, name)
            writer.write(path, os.path.relpath(path, folder))
