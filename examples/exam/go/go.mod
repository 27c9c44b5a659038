module example.com/petstore-exam

go 1.21
