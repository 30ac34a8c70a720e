"""The command line of scripts/record-model."""

import argparse
import subprocess
import sys
from pathlib import Path

from course.inside import DATA, RecordingError, record, tinygpt, vocabularies


def main() -> int:
    """Run the command line; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/record-model",
        description="Record what the pages inside the model show, into docs/assets/model/data.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", metavar="NAME_OR_FOLDER", help="what a real model does")
    what.add_argument("--tinygpt", metavar="CHECKPOINT", type=Path, help="the model of exercise 4")
    what.add_argument("--vocabularies", action="store_true", help="the tokens of two real models")
    options = parser.parse_args()
    try:
        if options.model:
            record.write(options.model)
        elif options.tinygpt:
            tinygpt.export(options.tinygpt, DATA)
        else:
            vocabularies.write()
    except (RecordingError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        print("pip could not download the vocabulary. Is there a network?", file=sys.stderr)
        return 1
    print(f"Written to {DATA}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
