from sequst.cli import main

main()
