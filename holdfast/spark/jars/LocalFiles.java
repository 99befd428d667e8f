package holdfast;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's view of local disks, with two things less. It starts no process to set the mode of a
 * file or folder that it makes, which Hadoop does where its native library is missing. And it
 * writes no checksum beside each file: nobody reads those of staged files, and they are removed.
 *
 * Written for Janino, which comes with Spark; `make jar` compiles it.
 */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
        setWriteChecksum(false);
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            int mode = permission.toShort();
            if ((mode & ~0777) != 0) {
                super.setPermission(path, permission); // Java knows no sticky bit
                return;
            }
            Set wanted = EnumSet.noneOf(PosixFilePermission.class);
            PosixFilePermission[] known = PosixFilePermission.values();
            for (int i = 0; i < known.length; i++) {
                if ((mode & (0400 >> i)) != 0) { // both go from the owner's read to others' execute
                    wanted.add(known[i]);
                }
            }
            Files.setPosixFilePermissions(pathToFile(path).toPath(), wanted);
        }
    }
}
