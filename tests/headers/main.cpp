// Linking is the test: every other unit of this program holds public headers and nothing else.
int main() { return 0; }
