// Functions without a body are allowed in packages that have such a file.
